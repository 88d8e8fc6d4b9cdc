package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// approveCommand returns "approve". With --args the decision is an edit of one call.
func (e *environment) approveCommand() *cobra.Command {
	d := client.Decision{Decision: client.Approve}
	var args string
	cmd := e.decideCommand("approve ID…", "Approve tool calls", &d, approvalThreads)
	decide := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if args != "" {
			if !isObject(args) {
				return usage(errors.New("--args must be a JSON object"))
			}
			if len(ids) > 1 {
				return usage(errors.New("--args needs a single ID"))
			}
			d.Decision, d.Args = client.Edit, json.RawMessage(args)
		}
		return decide(cmd, ids)
	}
	cmd.Flags().StringVar(&args, "args", "", "edit: call the tool with these arguments, a JSON object with all of them")
	cmd.Flags().StringVar(&d.Remember, "remember", "", "also approve further calls of the tool in this thread: those with equal arguments, or, with =tool, all")
	cmd.Flags().Lookup("remember").NoOptDefVal = client.RememberArguments
	return cmd
}

// rejectCommand returns "reject".
func (e *environment) rejectCommand() *cobra.Command {
	d := client.Decision{Decision: client.Reject}
	cmd := e.decideCommand("reject ID…", "Reject tool calls", &d, approvalThreads)
	cmd.Flags().StringVar(&d.Reason, "reason", "", "the reason, which the model receives")
	return cmd
}

// answerCommand returns "answer". It reads the approval first, because the form of the answer
// depends on the schema of the question.
func (e *environment) answerCommand() *cobra.Command {
	d := client.Decision{Decision: client.Answer}
	cmd := e.decideCommand("answer ID CONTENT", "Answer a question, or set the result of a tool call that waits for approval", &d, approvalThreads)
	cmd.Long = `Answer a question of a tool, or set the result of a tool call that waits for approval. The tool is then not called.

The answer to a question is JSON that fits its schema. If the schema is an object with one required member, the value of that
member is enough. The result of a call is a string. If CONTENT is -, it is read from standard input.`
	decide := cmd.RunE
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := textArgument(cmd, args[1])
		if err != nil {
			return err
		}
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		thread, _ := cmd.Flags().GetString("thread")
		found, err := openApprovals(cmd.Context(), c, client.ApprovalFilter{Thread: thread}, args[:1])
		if err != nil {
			return err
		}
		question := found[args[0]]
		d.Content = answerOf(question.Reason, question.ResponseSchema, text)
		return decide(cmd, args[:1])
	}
	return cmd
}

// threadFinder returns the thread of each interrupt with the given IDs, by ID. It fails with
// exitNotFound for an interrupt that is not open.
type threadFinder func(ctx context.Context, c *client.Client, ids []string) (map[string]string, error)

// decideCommand returns a command that sends the decision d about each given interrupt, in batches
// of client.MaxDecisions. find is used without --thread. Callers may wrap its RunE to complete d.
func (e *environment) decideCommand(use, short string, d *client.Decision, find threadFinder) *cobra.Command {
	var thread string
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: e.completeApprovals}
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		switch d.Remember {
		case "", client.RememberArguments, client.RememberTool:
		default:
			return usage(fmt.Errorf("--remember must be arguments or tool, not %q", d.Remember))
		}
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		threads := map[string]string{}
		if thread == "" {
			if threads, err = find(cmd.Context(), c, ids); err != nil {
				return err
			}
		}
		var results []client.DecisionResult
		for batch := range slices.Chunk(ids, client.MaxDecisions) {
			var decisions []client.Decision
			for _, id := range batch {
				decision := *d
				decision.ID, decision.ThreadID = id, cmp.Or(thread, threads[id])
				decisions = append(decisions, decision)
			}
			batchResults, err := c.Decide(cmd.Context(), decisions...)
			if err != nil {
				return err
			}
			results = append(results, batchResults...)
		}
		return e.showDecisions(cmd, results)
	}
	cmd.Flags().StringVar(&thread, "thread", "", "the thread of the approvals; default: from the inbox")
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

// approvalThreads finds the threads of approvals in the inbox.
func approvalThreads(ctx context.Context, c *client.Client, ids []string) (map[string]string, error) {
	found, err := openApprovals(ctx, c, client.ApprovalFilter{}, ids)
	if err != nil {
		return nil, err
	}
	threads := map[string]string{}
	for _, id := range ids {
		a, isOpen := found[id]
		if !isOpen {
			return nil, &exitError{exitNotFound, fmt.Errorf("no open approval %s: to see the decision of a decided one, add --thread", id)}
		}
		threads[id] = a.ThreadID
	}
	return threads, nil
}

// openApprovals searches the inbox for approvals, and returns the open ones by ID. It reads page
// after page until it has found all.
func openApprovals(ctx context.Context, c *client.Client, f client.ApprovalFilter, ids []string) (map[string]client.Approval, error) {
	found := map[string]client.Approval{}
	p := client.Paging{Limit: 500}
	for {
		page, err := c.Approvals(ctx, f, p)
		if err != nil {
			return nil, err
		}
		for _, a := range page.Value.Items {
			if slices.Contains(ids, a.ID) {
				found[a.ID] = a
			}
		}
		if p.Cursor = page.Value.NextCursor; p.Cursor == "" || len(found) == len(ids) {
			return found, nil
		}
	}
}

// showDecisions shows the results of decisions. The first refused one determines the exit code;
// with --json the output has all results.
func (e *environment) showDecisions(cmd *cobra.Command, results []client.DecisionResult) error {
	var first error
	for _, r := range results {
		err := r.Err()
		if first == nil && err != nil {
			first = exitWith(exitCode(err))
		}
		if e.json {
			continue
		}
		switch {
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s%s\n", r.ID, onTerminal(err.Error()), describeRecorded(r))
		case r.Missing > 0:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.ID, describeVote(r))
		case r.Repeated:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, as before%s\n", r.ID, r.Decision, describeRecorded(r))
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.ID, r.Decision)
		}
	}
	if !e.json {
		return first
	}
	raw, err := json.Marshal(map[string]any{"results": results})
	if err == nil {
		err = document(cmd.OutOrStdout(), raw)
	}
	return errors.Join(err, first)
}

// describeRecorded describes the decision that was recorded before; "" = none, or nothing to add.
func describeRecorded(r client.DecisionResult) string {
	var decision struct{ Decision, By string }
	if json.Unmarshal(r.Recorded, &decision) != nil || decision.Decision == "" || r.Err() == nil && decision.By == "" {
		return ""
	}
	text := " (recorded: " + oneLine(decision.Decision, maxQuotedChars)
	if decision.By != "" {
		text += " by " + oneLine(decision.By, maxQuotedChars)
	}
	return text + ")"
}

// describeVote describes a vote that does not complete the quorum: how many more votes are needed,
// and the votes for other arguments.
func describeVote(r client.DecisionResult) string {
	text := fmt.Sprintf("%s is counted, votes still needed for the same: %d", r.Decision, r.Missing)
	for _, p := range r.Tallies {
		if p.Votes > 0 && p.Decision != r.Decision {
			text += fmt.Sprintf("; %s has %d of %d votes", p.Decision, p.Votes, p.Votes+p.Missing)
		}
	}
	return text
}
