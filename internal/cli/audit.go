package cli

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/audit"
)

// auditCommand returns the group "audit". Without a subcommand it lists entries.
func (e *environment) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "List, export and verify the audit log", Args: cobra.NoArgs}
	list := e.listAudit()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.exportAudit(), e.verifyAudit())
	return cmd
}

// auditFlags adds the flags that select entries by chain and time.
func auditFlags(cmd *cobra.Command, f *client.AuditFilter) {
	cmd.Flags().BoolVar(&f.Platform, "platform", false, "the entries of the platform, instead of those of the tenant")
}

// listAudit returns "audit list", which prints one page.
func (e *environment) listAudit() *cobra.Command {
	var f client.AuditFilter
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List entries, newest first (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		answer, err := c.AuditEntries(cmd.Context(), f, p)
		if err != nil {
			return err
		}
		rows := [][]string{{"NUMBER", "TIME", "SUBJECT", "ACTION", "OUTCOME", "TARGET"}}
		for _, raw := range answer.Value.Items {
			entry, err := audit.Decode(raw)
			if err != nil {
				return err
			}
			rows = append(rows, auditRow(entry))
		}
		return e.printResult(cmd, answer.JSON, answer.Value.NextCursor, rows)
	}
	flags := cmd.Flags()
	auditFlags(cmd, &f)
	flags.StringVar(&f.Action, "action", "", "only entries with this action, such as thread.delete")
	flags.StringVar(&f.Outcome, "outcome", "", "only entries with this outcome: accepted, denied or unknown")
	flags.StringVar(&f.Subject, "subject", "", "only actions of this subject")
	flags.StringVar(&f.Thread, "thread", "", "only actions on this thread")
	flags.StringVar(&f.Since, "since", "", "only entries at or after this time (RFC 3339)")
	flags.StringVar(&f.Until, "until", "", "only entries before this time (RFC 3339)")
	flags.StringVar(&f.Order, "order", "newest", "which entries are first: newest or oldest")
	paging(cmd, &p)
	completeWords(cmd, "order", "newest", "oldest")
	completeWords(cmd, "outcome", "accepted", "denied", "unknown")
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

// auditRow returns the row of an entry.
func auditRow(entry *audit.Entry) []string {
	subject := ""
	if entry.Actor != nil {
		subject = entry.Actor.Subject
	}
	var target []string
	for _, part := range []struct{ name, id string }{
		{"thread", entry.Thread}, {"run", entry.Run}, {"agent", entry.Agent}, {"approval", entry.Approval}, {"schedule", entry.Schedule},
	} {
		if part.id != "" {
			target = append(target, part.name+" "+part.id)
		}
	}
	outcome := strings.Join(strings.Fields(string(entry.Outcome)+" "+entry.Code+" "+entry.Rule), " ")
	return []string{strconv.FormatUint(entry.Number, 10), entry.Time.Format(time.RFC3339), subject, string(entry.Action), outcome, strings.Join(target, ", ")}
}

// exportAudit returns "audit export". It writes the bytes of the entries unchanged, one per line.
func (e *environment) exportAudit() *cobra.Command {
	var f client.AuditFilter
	cmd := &cobra.Command{
		Use: "export", Short: "Write all entries to standard output, one per line", Args: cobra.NoArgs,
		Long: "Writes all entries to standard output, oldest first, one per line and unchanged. \"perdure audit verify FILE\" verifies them without the API.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			err := e.eachAuditEntry(cmd, f, func(raw []byte) error {
				_, err := out.Write(append(raw, '\n'))
				return err
			})
			return errors.Join(err, out.Flush())
		},
	}
	auditFlags(cmd, &f)
	return cmd
}

// eachAuditEntry calls do for each entry, oldest first.
func (e *environment) eachAuditEntry(cmd *cobra.Command, f client.AuditFilter, do func(raw []byte) error) error {
	c, err := e.client(cmd)
	if err != nil {
		return err
	}
	for p := (client.Paging{Limit: 500}); ; {
		answer, err := c.AuditEntries(cmd.Context(), f, p)
		if err != nil {
			return err
		}
		for _, raw := range answer.Value.Items {
			if err := do(raw); err != nil {
				return err
			}
		}
		if p.Cursor = answer.Value.NextCursor; p.Cursor == "" {
			return nil
		}
	}
}
