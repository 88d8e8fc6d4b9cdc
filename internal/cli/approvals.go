package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// approvalsCommand returns the group "approvals". Its flags are filters that the subcommands share.
// Without a subcommand it lists open approvals.
func (e *environment) approvalsCommand() *cobra.Command {
	var f client.ApprovalFilter
	cmd := &cobra.Command{Use: "approvals", Short: "List, watch and filter open approvals and questions", Args: cobra.NoArgs}
	list := e.listApprovals(&f)
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.watchApprovals(&f))
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.Agent, "agent", "", "only those of this agent")
	flags.StringVar(&f.Tool, "tool", "", "only calls of this tool")
	flags.StringVar(&f.Thread, "thread", "", "only those of this thread")
	flags.StringVar(&f.Assignee, "assignee", "", "only those that this approver may decide: me, a subject, or role:name")
	completeFlag(cmd, "agent", e.completeAgents)
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

// listApprovals returns "approvals list".
func (e *environment) listApprovals(f *client.ApprovalFilter) *cobra.Command {
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List open approvals and questions, oldest first (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		answer, err := c.Approvals(cmd.Context(), *f, p)
		if err != nil {
			return err
		}
		if f.Status == "decided" {
			return e.printResult(cmd, answer.JSON, answer.Value.NextCursor, decidedRows(answer.Value.Items))
		}
		rows := [][]string{{"ID", "AGENT", "ASKS", "WAITS", "APPROVERS", "THREAD"}}
		for _, a := range answer.Value.Items {
			rows = append(rows, []string{a.ID, agentAndStep(a), questionText(a), ago(a.RequestedAt), approvers(a), a.ThreadID})
		}
		return e.printResult(cmd, answer.JSON, answer.Value.NextCursor, rows)
	}
	cmd.Flags().StringVar(&f.OlderThan, "older-than", "", "only approvals that have been open for at least this long, such as 4h")
	cmd.Flags().StringVar(&f.Status, "status", "", "open (the default), or decided: those of the last 30 days, newest first")
	paging(cmd, &p)
	return cmd
}

// decidedRows returns the table of decided approvals, with their decisions.
func decidedRows(all []client.Approval) [][]string {
	rows := [][]string{{"ID", "AGENT", "ASKED", "DECISION", "BY", "WHEN", "THREAD"}}
	for _, a := range all {
		var last client.RecordedDecision
		if n := len(a.Decisions); n > 0 {
			last = a.Decisions[n-1]
		}
		decision := last.Decision
		switch {
		case len(last.Args) > 0:
			decision += " " + string(last.Args)
		case len(last.Content) > 0:
			decision += " " + string(last.Content)
		case last.Reason != "":
			decision += ": " + last.Reason
		}
		rows = append(rows, []string{a.ID, agentAndStep(a), questionText(a), decision, cmp.Or(last.By, "-"), ago(last.At), a.ThreadID})
	}
	return rows
}

// questionText describes what an approval asks: the call with its arguments, or the message of a
// question, of an approve step or of a limit.
func questionText(a client.Approval) string {
	args := string(a.Args)
	if a.ArgsTruncated {
		args = "(arguments too long: see the thread)"
	}
	switch {
	case isQuestion(a.Reason):
		return strings.TrimSpace(a.Message + " " + answerForm(a.ResponseSchema))
	case a.ToolName == approveTool && !a.ArgsTruncated && !hasMembers(args):
		return a.Message
	case a.ToolName == approveTool:
		return a.Message + " " + args
	}
	return a.ToolName + " " + args
}

// agentAndStep returns the agent of an approval, with the pipeline step that waits.
func agentAndStep(a client.Approval) string {
	if a.Step == "" {
		return a.Agent
	}
	return a.Agent + ", step " + a.Step
}

// approvers describes who may decide, and the votes if there is a quorum.
func approvers(a client.Approval) string {
	text := "-" // the rule names nobody
	for i, name := range a.Approvers {
		if i == 0 {
			text = name
			continue
		}
		text += ", " + name
	}
	if a.Quorum > 1 {
		text += " (" + votes(a) + ")"
	}
	return text
}

// votes describes the votes for each set of arguments, or for each answer.
func votes(a client.Approval) string {
	text := ""
	for _, p := range a.Tallies {
		if p.Votes == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s: %d of %d", p.Decision, p.Votes, a.Quorum)
		if proposed := proposedText(a, p); proposed != "" {
			text += " for " + proposed
		}
	}
	if text == "" {
		return fmt.Sprintf("0 of %d", a.Quorum)
	}
	return text
}

// proposedText returns the arguments of an edit, or the answer, that approvers vote for; "" if they vote
// for the arguments of the model.
func proposedText(a client.Approval, p client.Tally) string {
	for _, d := range a.Decisions {
		switch {
		case d.ArgsDigest != p.ArgsDigest:
		case d.Decision == client.Edit:
			return oneLine(string(d.Args), maxQuotedChars)
		case d.Decision == client.Answer:
			return oneLine(string(d.Content), maxQuotedChars)
		}
	}
	return ""
}

// watchApprovals returns "approvals watch". It runs until Ctrl-C.
func (e *environment) watchApprovals(f *client.ApprovalFilter) *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Follow the changes of approvals",
		Long: `Show the open approvals, and then every change of an approval. With --after, show the changes after the cursor of an
earlier event.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		if after == "" {
			if after, err = e.printOpen(cmd, c, *f); err != nil {
				return err
			}
		}
		for event, err := range c.WatchApprovals(cmd.Context(), *f, after) {
			if err == nil {
				err = e.printEvent(cmd, event)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	cmd.Flags().StringVar(&after, "after", "", "continue after this cursor")
	return cmd
}

// printOpen shows the open approvals in the form of events. It returns the events cursor of the
// first page, after which the feed has every change since: none is missed, and some may be shown
// twice.
func (e *environment) printOpen(cmd *cobra.Command, c *client.Client, f client.ApprovalFilter) (after string, err error) {
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
				err = e.printEvent(cmd, client.ApprovalEvent{Type: "opened", At: a.RequestedAt, Approval: a, JSON: raw})
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

// printEvent shows one change of an approval.
func (e *environment) printEvent(cmd *cobra.Command, event client.ApprovalEvent) error {
	if e.json {
		return eventLine(cmd.OutOrStdout(), event.Cursor, event.JSON)
	}
	suffix := ""
	if n := len(event.Approval.Decisions); n > 0 && event.Type != "opened" {
		last := event.Approval.Decisions[n-1]
		suffix = fmt.Sprintf("  %s by %s", last.Decision, strconv.Quote(last.By))
		if len(event.Approval.Tallies) > 0 {
			suffix += " (" + votes(event.Approval) + ")"
		}
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-9s  %s  %s  (%s, thread %s)%s\n",
		event.At.Local().Format("15:04:05"), event.Type, event.Approval.ID, oneLine(questionText(event.Approval), maxQuotedChars), agentAndStep(event.Approval), event.Approval.ThreadID, suffix)
	return err
}

// paging adds the flags of a list with pages.
func paging(cmd *cobra.Command, p *client.Paging) {
	cmd.Flags().IntVar(&p.Limit, "limit", 0, "maximum number of entries, 1 to 500; default 100")
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", "the cursor that the previous page printed")
}
