package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// threadsCommand returns the group "threads". Without a subcommand it lists threads.
func (e *environment) threadsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "threads", Short: "List, read, fork, share and delete threads", Args: cobra.NoArgs}
	list := e.listThreads()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.showThread(), e.threadMessages(), e.threadState(), e.threadRuns(), e.listForkPoints(), e.forkThread(), e.titleThread(), e.shareThread(), e.deleteThread())
	return cmd
}

// listThreads returns "threads list", which prints one page.
func (e *environment) listThreads() *cobra.Command {
	var f client.ThreadFilter
	cmd := &cobra.Command{Use: "list", Short: "List threads, last updated first (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		answer, err := c.Threads(cmd.Context(), f)
		if err != nil {
			return err
		}
		rows := [][]string{{"THREAD", "AGENT", "STATUS", "UPDATED", "RUN", "TITLE"}}
		for _, t := range answer.Value.Items {
			rows = append(rows, []string{t.ThreadID, t.Agent, t.Status, ago(t.UpdatedAt), t.RunID, t.Title})
		}
		if f.Stuck {
			rows = stuckRows(answer.Value.Items)
		}
		return e.printResult(cmd, answer.JSON, answer.Value.NextCursor, rows)
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Agent, "agent", "", "only those of this agent")
	flags.StringVar(&f.Status, "status", "", "only threads with this status: running, paused, waiting, failed or idle")
	flags.StringVar(&f.Text, "search", "", "only those with this text in the title or the metadata, in whatever case")
	flags.StringVar(&f.Owner, "owner", "", "only those of this subject")
	flags.StringVar(&f.WaitingFor, "waiting-for", "", "only those that wait for this: approval, question, limit, client_tool, timer or event")
	flags.BoolVar(&f.Retrying, "retrying", false, "only those whose active run is retrying")
	flags.BoolVar(&f.Stuck, "stuck", false, "only those whose active run makes no progress, with the reason")
	flags.StringVar(&f.MinCost, "min-cost", "", "only those whose ended runs cost at least this, such as 0.5")
	flags.StringVar(&f.MaxCost, "max-cost", "", "only those whose ended runs cost at most this")
	flags.StringVar(&f.CreatedAfter, "created-after", "", "only those that began after this time (RFC 3339)")
	flags.StringVar(&f.CreatedBefore, "created-before", "", "only those that began before this time (RFC 3339)")
	flags.StringVar(&f.UpdatedAfter, "updated-after", "", "only those updated after this time (RFC 3339)")
	flags.StringVar(&f.UpdatedBefore, "updated-before", "", "only those updated before this time (RFC 3339)")
	paging(cmd, &f.Paging)
	completeFlag(cmd, "agent", e.completeAgents)
	completeWords(cmd, "status", "running", "paused", "waiting", "failed", "idle")
	completeWords(cmd, "waiting-for", "approval", "question", "limit", "client_tool", "timer", "event")
	return cmd
}

// stuckRows returns the table of stuck threads.
func stuckRows(items []client.ThreadItem) [][]string {
	rows := [][]string{{"THREAD", "AGENT", "RUN", "SINCE", "REASON"}}
	for _, t := range items {
		if t.Stuck != nil {
			rows = append(rows, []string{t.ThreadID, t.Agent, t.RunID, ago(t.Stuck.Since), t.Stuck.Reason})
		}
	}
	return rows
}

// threadCommand returns a command whose only argument is the ID of a thread. run gets a client and
// the ID.
func (e *environment) threadCommand(use, short string, run func(cmd *cobra.Command, c *client.Client, thread string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			return run(cmd, c, args[0])
		},
	}
}

// showThread returns "threads show".
func (e *environment) showThread() *cobra.Command {
	return e.threadCommand("show THREAD", "Show the summary of a thread", func(cmd *cobra.Command, c *client.Client, thread string) error {
		t, err := c.Thread(cmd.Context(), thread)
		if err != nil {
			return err
		}
		rows := [][]string{
			{"thread", t.Value.ThreadID}, {"title", t.Value.Title}, {"agent", t.Value.Agent}, {"status", t.Value.Status}, {"updated", ago(t.Value.UpdatedAt)},
			{"last run", t.Value.RunID}, {"runs", strconv.Itoa(t.Value.Runs)}, {"messages", strconv.Itoa(t.Value.Messages)},
		}
		if event := t.Value.Event; event != nil {
			rows = append(rows, []string{"event", describeEvent(event)})
		}
		if r := t.Value.Retrying; r != nil {
			rows = append(rows, []string{"retrying", fmt.Sprintf("%s, attempt %d: %s", r.Activity, r.Attempt, r.Error)})
		}
		if s := t.Value.Stuck; s != nil {
			rows = append(rows, []string{"stuck", fmt.Sprintf("for %s: %s", ago(s.Since), s.Reason)})
		}
		if w := t.Value.Waiting; w != nil {
			for _, i := range w.Interrupts {
				if w := client.WaitOf(i); w != nil {
					rows = append(rows, []string{"waiting", i.ID + "  " + describeWait(w)})
				} else {
					rows = append(rows, []string{"waits for", i.ID + "  " + i.Message})
				}
			}
			for _, id := range w.ToolCallIDs {
				rows = append(rows, []string{"waits for", "the result of " + id})
			}
		}
		return e.printResult(cmd, t.JSON, "", rows)
	})
}

// titleThread returns "threads title".
func (e *environment) titleThread() *cobra.Command {
	cmd := &cobra.Command{
		Use: "title THREAD [TITLE]", Short: "Set the title of a thread; without TITLE, restore the one by a model, or that of the first message",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: e.completeThreads,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		title := ""
		if len(args) > 1 {
			title = args[1]
		}
		described, err := c.SetTitle(cmd.Context(), args[0], title)
		if err != nil {
			return err
		}
		return e.printResult(cmd, described.JSON, "", [][]string{{"thread", described.Value.ThreadID}, {"title", described.Value.Title}})
	}
	return cmd
}

// threadMessages returns "threads messages", which prints complete messages like "tail" does.
func (e *environment) threadMessages() *cobra.Command {
	var p client.Paging
	cmd := e.threadCommand("messages THREAD", "Show the messages of a thread", func(cmd *cobra.Command, c *client.Client, thread string) error {
		list, err := c.Messages(cmd.Context(), thread, p)
		if err != nil {
			return err
		}
		if e.json {
			return document(cmd.OutOrStdout(), list.JSON)
		}
		answer, _ := e.pages(cmd.OutOrStdout(), cmd.ErrOrStderr())
		t := newTranscript(answer, answer)
		for _, m := range list.Value.Items {
			t.showMessage(m)
		}
		return e.printResult(cmd, nil, list.Value.NextCursor, nil)
	})
	paging(cmd, &p)
	return cmd
}

// threadState returns "threads state". Its output is JSON with and without --json.
func (e *environment) threadState() *cobra.Command {
	return e.threadCommand("state THREAD", "Show the state of a thread, as JSON", func(cmd *cobra.Command, c *client.Client, thread string) error {
		state, err := c.State(cmd.Context(), thread)
		if err != nil {
			return err
		}
		return document(cmd.OutOrStdout(), state)
	})
}

// threadRuns returns "threads runs".
func (e *environment) threadRuns() *cobra.Command {
	var p client.Paging
	cmd := e.threadCommand("runs THREAD", "List the runs of a thread, newest first", func(cmd *cobra.Command, c *client.Client, thread string) error {
		list, err := c.Runs(cmd.Context(), thread, p)
		if err != nil {
			return err
		}
		return e.printResult(cmd, list.JSON, list.Value.NextCursor, runRows(list.Value.Items))
	})
	paging(cmd, &p)
	return cmd
}

// runRows returns the table of runs. It has the events that started them if any run has one.
func runRows(items []client.ThreadRun) [][]string {
	rows := [][]string{{"RUN", "AGENT", "STARTED", "ENDED", "OUTCOME"}}
	for _, r := range items {
		rows = append(rows, []string{r.RunID, r.Agent, ago(r.StartedAt), ago(r.EndedAt), r.Outcome + " " + r.Code})
	}
	if !slices.ContainsFunc(items, func(r client.ThreadRun) bool { return r.Event != nil }) {
		return rows
	}
	rows[0] = append(rows[0], "EVENT")
	for i, r := range items {
		rows[i+1] = append(rows[i+1], describeEvent(r.Event))
	}
	return rows
}

// describeEvent returns the type, the ID and the source of an event that started a run; "" for nil.
func describeEvent(e *client.TriggerEvent) string {
	if e == nil {
		return ""
	}
	return oneLine(fmt.Sprintf("%s with the ID %s, from %s", e.Type, e.ID, e.Source), maxQuotedChars)
}

// shareThread returns "threads share". It replaces the shares of a thread, or shows them.
func (e *environment) shareThread() *cobra.Command {
	var makePrivate bool
	cmd := &cobra.Command{
		Use: "share THREAD [NAME=ACCESS...]", Short: "Replace the shares of a thread, or show them", Args: cobra.MinimumNArgs(1), ValidArgsFunction: e.completeThreads,
		Long: "Replaces the shares of a thread. NAME is a subject, role:name or everyone, and ACCESS is read, run, decide or manage. Without NAME=ACCESS it shows the owner and the shares.",
		RunE: func(cmd *cobra.Command, args []string) error {
			shares, err := sharesOf(args[1:])
			if err != nil {
				return err
			}
			if makePrivate && len(shares) > 0 {
				return usage(errors.New("--private cannot be combined with shares"))
			}
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			var answer client.Document[client.Shares]
			warnOfQualified(cmd, shares)
			if makePrivate || len(shares) > 0 {
				answer, err = c.Share(cmd.Context(), args[0], shares...)
			} else {
				answer, err = c.Shares(cmd.Context(), args[0])
			}
			if err != nil {
				return err
			}
			rows := [][]string{{"WHO", "ACCESS"}, {answer.Value.Owner, "owner"}}
			for _, share := range answer.Value.Shares {
				rows = append(rows, []string{granteeOf(share), share.Access})
			}
			return e.printResult(cmd, answer.JSON, "", rows)
		},
	}
	cmd.Flags().BoolVar(&makePrivate, "private", false, "remove all shares")
	return cmd
}

// The names of grantees that are no subjects.
const (
	granteeEveryone   = "everyone"
	granteeRolePrefix = "role:"
)

// sharesOf parses arguments such as bob=run, role:finance=decide and everyone=read. The API checks
// the access.
func sharesOf(args []string) ([]client.Share, error) {
	var shares []client.Share
	for _, arg := range args {
		at := strings.LastIndex(arg, "=")
		if at < 1 {
			return nil, usage(fmt.Errorf("%q is not a share such as bob=run, role:finance=decide or everyone=read", arg))
		}
		share := client.Share{Access: arg[at+1:]}
		switch name := arg[:at]; {
		case name == granteeEveryone:
			share.Everyone = true
		case strings.HasPrefix(name, granteeRolePrefix):
			share.Role = strings.TrimPrefix(name, granteeRolePrefix)
		default:
			share.Subject = name
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// warnOfQualified warns if a subject looks like tenant/subject, as policies write a user. It cannot be
// refused, because an issuer may put a slash into a subject.
func warnOfQualified(cmd *cobra.Command, shares []client.Share) {
	for _, share := range shares {
		if strings.Contains(share.Subject, "/") {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: the share is for the subject %q of your tenant. The part before the slash is no tenant: a thread cannot be shared with another one.\n", share.Subject)
		}
	}
}

// granteeOf is the inverse of sharesOf for one share, without its access.
func granteeOf(share client.Share) string {
	switch {
	case share.Everyone:
		return granteeEveryone
	case share.Role != "":
		return granteeRolePrefix + share.Role
	}
	return share.Subject
}

// deleteThread returns "threads delete". It does not ask for confirmation.
func (e *environment) deleteThread() *cobra.Command {
	return e.threadCommand("delete THREAD", "Cancel the active run of a thread, and delete the thread", func(cmd *cobra.Command, c *client.Client, thread string) error {
		if err := c.DeleteThread(cmd.Context(), thread); err != nil {
			return err
		}
		return e.printDone(cmd, "%s is deleted.", thread)
	})
}
