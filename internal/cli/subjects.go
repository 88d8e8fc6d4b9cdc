package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// subjectsCommand returns the group "subjects".
func (e *environment) subjectsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "subjects", Short: "Delete what the tenant stores about a person", Args: cobra.NoArgs}
	cmd.AddCommand(e.deleteSubject())
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
	}{{"thread", r.Deleted.Threads}, {"interrupted deletion", r.Deleted.Completed}, {"schedule", r.Deleted.Schedules}, {"share", r.Deleted.Shares}} {
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
