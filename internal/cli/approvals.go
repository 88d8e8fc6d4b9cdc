package cli

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func (e *environment) approvalsCommand() *cobra.Command {
	var f client.ApprovalFilter
	cmd := &cobra.Command{Use: "approvals", Short: "Show what waits for people", Args: cobra.NoArgs}
	list := e.listApprovals(&f)
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.watchApprovals(&f))
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.Agent, "agent", "", "only of this agent")
	flags.StringVar(&f.Tool, "tool", "", "only calls of this tool")
	flags.StringVar(&f.Thread, "thread", "", "only of this thread")
	flags.StringVar(&f.Assignee, "assignee", "", "only what somebody may decide: me, a subject, or role:name")
	completeFlag(cmd, "agent", e.completeAgents)
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

func (e *environment) listApprovals(f *client.ApprovalFilter) *cobra.Command {
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List what waits for people, the oldest first (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		answer, err := c.Approvals(cmd.Context(), *f, p)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "AGENT", "CALL", "WAITS", "APPROVERS", "THREAD"}}
		for _, a := range answer.Value.Items {
			rows = append(rows, []string{a.ID, a.Agent, callText(a), ago(a.RequestedAt), approvers(a), a.ThreadID})
		}
		return e.answer(cmd, answer.JSON, answer.Value.NextCursor, rows)
	}
	cmd.Flags().StringVar(&f.OlderThan, "older-than", "", "only what has waited for at least as long, such as 4h")
	paging(cmd, &p)
	return cmd
}

// callText is what is asked for.
func callText(a client.Approval) string {
	if a.ArgsTruncated {
		return a.ToolName + " (long arguments: see the thread)"
	}
	return a.ToolName + " " + string(a.Args)
}

// approvers are who may decide, and how many have to.
func approvers(a client.Approval) string {
	text := "anybody"
	for i, name := range a.Approvers {
		if i == 0 {
			text = name
			continue
		}
		text += ", " + name
	}
	if a.Quorum > 1 {
		text += fmt.Sprintf(" (%d of %d)", len(a.Decisions), a.Quorum)
	}
	return text
}

func (e *environment) watchApprovals(f *client.ApprovalFilter) *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show what happens to approvals, as it happens",
		Long: `Show what happens to approvals, as it happens: first those that wait, and then everything that follows.
With --after it goes on behind the cursor of an earlier event.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		if after == "" {
			if after, err = e.pendingNow(cmd, c, *f); err != nil {
				return err
			}
		}
		for event, err := range c.WatchApprovals(cmd.Context(), *f, after) {
			if err == nil {
				err = e.tell(cmd, event)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	cmd.Flags().StringVar(&after, "after", "", "go on behind this cursor")
	return cmd
}

// pendingNow tells of what waits, and returns where the feed goes on: together they leave nothing out.
func (e *environment) pendingNow(cmd *cobra.Command, c *client.Client, f client.ApprovalFilter) (after string, err error) {
	p := client.Paging{Limit: 500}
	for {
		page, err := c.Approvals(cmd.Context(), f, p)
		if err != nil {
			return "", err
		}
		if after == "" {
			after = page.Value.EventsCursor
		}
		for _, a := range page.Value.Items {
			raw, err := json.Marshal(map[string]any{"type": "opened", "at": a.RequestedAt, "approval": a})
			if err == nil {
				err = e.tell(cmd, client.ApprovalEvent{Type: "opened", At: a.RequestedAt, Approval: a, JSON: raw})
			}
			if err != nil {
				return "", err
			}
		}
		if p.Cursor = page.Value.NextCursor; p.Cursor == "" {
			return after, nil
		}
	}
}

// tell shows something that has happened to an approval.
func (e *environment) tell(cmd *cobra.Command, event client.ApprovalEvent) error {
	if e.json {
		return eventLine(cmd.OutOrStdout(), event.Cursor, event.JSON)
	}
	by := ""
	if n := len(event.Approval.Decisions); n > 0 && event.Type != "opened" {
		last := event.Approval.Decisions[n-1]
		by = fmt.Sprintf("  %s by %s", last.Decision, strconv.Quote(last.By))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-9s  %s  %s%s\n", event.At.Local().Format("15:04:05"), event.Type, event.Approval.ID, line(callText(event.Approval), longest), by)
	return err
}

// paging adds the flags of a list.
func paging(cmd *cobra.Command, p *client.Paging) {
	cmd.Flags().IntVar(&p.Limit, "limit", 0, "how many, 1 to 500; default 100")
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", "where the page before ended")
}
