package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// fileCommand returns the group "file". Without a subcommand it lists files.
func (e *environment) fileCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "file", Short: "Upload, download, list and remove files", Args: cobra.NoArgs}
	list := e.listFiles()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(e.putFile(), e.getFile(), list, e.removeFile())
	return cmd
}

// putFile returns "file put".
func (e *environment) putFile() *cobra.Command {
	return &cobra.Command{
		Use: "put FILE", Short: "Upload a file", Args: cobra.ExactArgs(1),
		Long: `Upload a file.

The upload of a file of more than 8 MiB continues after a lost connection, and after a restart of the server. The server deletes the file after 24 hours unless a message refers to it. "perdure run --file" uploads the files of a message itself.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			uploaded, err := uploadFile(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return e.printResult(cmd, uploaded.JSON, "", [][]string{describeFile(uploaded.Value)})
		},
	}
}

// describeFile returns the row of a file.
func describeFile(f client.File) []string {
	return []string{f.ID, f.Type, strconv.FormatInt(f.Size, 10), f.Name, f.URL}
}

// uploadFile uploads a file of this machine.
func uploadFile(ctx context.Context, c *client.Client, name string) (client.Document[client.File], error) {
	f, err := os.Open(name)
	if err != nil {
		return client.Document[client.File]{}, usage(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return client.Document[client.File]{}, usage(errors.Join(fmt.Errorf("%s is not a file", name), err))
	}
	return c.UploadFile(ctx, client.Upload{Name: filepath.Base(name), Type: mime.TypeByExtension(filepath.Ext(name)), Body: f, Size: info.Size()})
}

// getFile returns "file get".
func (e *environment) getFile() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "get ID", Short: "Download a file", Args: cobra.ExactArgs(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		if output == "" && isTerminal(cmd.OutOrStdout()) {
			return usage(errors.New("the bytes of a file may change the terminal: name a file with --output, or redirect the output"))
		}
		content, err := c.OpenFile(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer content.Close() //nolint:errcheck // it was read
		if output == "" {
			_, err = io.Copy(cmd.OutOrStdout(), content)
			return err
		}
		return replaceFile(output, publicMode, func(out io.Writer) error {
			_, err := io.Copy(out, content)
			return err
		})
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file; default: standard output")
	return cmd
}

// listFiles returns "file list".
func (e *environment) listFiles() *cobra.Command {
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List the files that you have uploaded (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		list, err := c.Files(cmd.Context(), p)
		if err != nil {
			return err
		}
		rows := [][]string{{"FILE", "TYPE", "BYTES", "NAME", "URL"}}
		for _, f := range list.Value.Items {
			rows = append(rows, describeFile(f))
		}
		return e.printResult(cmd, list.JSON, list.Value.NextCursor, rows)
	}
	paging(cmd, &p)
	return cmd
}

// removeFile returns "file rm".
func (e *environment) removeFile() *cobra.Command {
	return e.threadCommand("rm ID", "Delete a file; messages that refer to it keep its URL", func(cmd *cobra.Command, c *client.Client, id string) error {
		if err := c.DeleteFile(cmd.Context(), id); err != nil {
			return err
		}
		return e.printDone(cmd, "%s is deleted.", id)
	})
}

// attach uploads files, and returns a message with the text and parts that refer to them.
func attach(ctx context.Context, c *client.Client, m agui.Message, names []string) (agui.Message, error) {
	parts := m.Content.Parts()
	for _, name := range names {
		uploaded, err := uploadFile(ctx, c, name)
		if err != nil {
			return m, fmt.Errorf("--file %s: %w", name, err)
		}
		f := uploaded.Value
		metadata, err := json.Marshal(map[string]string{"filename": f.Name})
		if err != nil {
			return m, err
		}
		parts = append(parts, agui.ContentPart{
			Type: partType(f.Type), Metadata: metadata, Source: &agui.PartSource{Type: agui.SourceURL, Value: f.URL, MimeType: f.Type},
		})
	}
	m.Content = agui.PartsContent(parts)
	return m, nil
}

// partType returns the type of the part for a media type.
func partType(mediaType string) agui.PartType {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image":
		return agui.PartImage
	case "audio":
		return agui.PartAudio
	case "video":
		return agui.PartVideo
	}
	return agui.PartDocument
}
