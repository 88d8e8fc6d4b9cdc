package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/process/version"
)

// versionCommand returns "version". It does not use a server.
func (e *environment) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := version.Read()
			if !e.json {
				_, err := io.WriteString(cmd.OutOrStdout(), info.Text("perdure"))
				return err
			}
			body, err := json.Marshal(info)
			if err != nil {
				return err
			}
			return document(cmd.OutOrStdout(), body)
		},
	}
	cmd.Flags().BoolVar(&e.json, "json", false, "print one JSON document")
	return cmd
}
