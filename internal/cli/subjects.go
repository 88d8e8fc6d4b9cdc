package cli

import (
	"bufio"
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// subjectsCommand returns the group "subjects".
func (e *environment) subjectsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "subjects", Short: "Export and delete what the tenant stores about a person", Args: cobra.NoArgs}
	cmd.AddCommand(e.exportSubject(), e.deleteSubject())
	return cmd
}

// deleteSubject returns "subjects delete", which sends requests until the deletion is complete, and
// prints the report of each.
func (e *environment) deleteSubject() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{Use: "delete SUBJECT", Short: "Delete everything about a subject, and print what stays", Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		for cursor := ""; ; {
			answer, err := c.DeleteSubject(cmd.Context(), args[0], cursor, dryRun)
			if err != nil {
				return err
			}
			if err := e.printResult(cmd, answer.JSON, "", subjectRows(&answer.Value)); err != nil {
				return err
			}
			if cursor = answer.Value.NextCursor; cursor == "" {
				return nil
			}
		}
	}
	return cmd
}

// exportSubject returns "subjects export", which writes an export and checks its manifest.
func (e *environment) exportSubject() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "export SUBJECT", Short: "Write everything about a subject, one JSON object per line", Args: cobra.ExactArgs(1),
		Long: "Writes what the tenant stores about a subject, one JSON object per line. The last line is a manifest with counts and a digest. If it is missing or wrong, the export was cut, and the command fails. For the subject itself, and for administrators of the tenant.",
	}
	cmd.Flags().StringVar(&output, "output", "", "the file that a complete export replaces; without it, standard output")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		write := func(out io.Writer) error {
			buffered := bufio.NewWriter(out)
			_, err := c.ExportSubject(cmd.Context(), args[0], buffered)
			return errors.Join(err, buffered.Flush())
		}
		if output == "" {
			return write(cmd.OutOrStdout())
		}
		return replaceFile(output, privateMode, write)
	}
	return cmd
}

// subjectRows returns the rows of a report.
func subjectRows(r *client.SubjectDeletion) [][]string {
	done := "deleted"
	if r.DryRun {
		done = "would be deleted"
	}
	rows := [][]string{{"KIND", "ID", "RESULT"}}
	for _, group := range []struct {
		kind string
		ids  []string
	}{{"thread", r.Deleted.Threads}, {"interrupted deletion", r.Deleted.Completed}, {"schedule", r.Deleted.Schedules}, {"share", r.Deleted.Shares}, {"file", r.Deleted.Files}, {"upload", r.Deleted.Uploads}} {
		for _, id := range group.ids {
			rows = append(rows, []string{group.kind, id, done})
		}
	}
	if r.Deleted.Sessions > 0 {
		rows = append(rows, []string{"sessions", strconv.Itoa(r.Deleted.Sessions), done})
	}
	for _, k := range r.Kept {
		rows = append(rows, []string{k.Kind, k.ID, "stays: " + k.Reason})
	}
	return rows
}
