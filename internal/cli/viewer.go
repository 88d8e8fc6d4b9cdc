package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// viewer shows runs of one thread: as text with a transcript, or as lines of JSON. It is used by
// one goroutine.
type viewer struct {
	*transcript
	client  *client.Client
	json    io.Writer // of --json; nil = text
	notices io.Writer // for messages of the command itself
	// questions is made at the first question, because it reads standard input.
	questions   *questions
	thread, run string
	after       string // the cursor of the last event
}

// viewer returns a viewer that writes to the outputs of cmd. With quiet it shows only the result of a
// run, or else the agent's answer, when the run has ended; and its failure, or what it waits for.
func (e *environment) viewer(cmd *cobra.Command, c *client.Client, quiet bool) *viewer {
	answer, notes := e.pages(cmd.OutOrStdout(), cmd.ErrOrStderr())
	v := &viewer{client: c, transcript: newTranscript(answer, notes), notices: cmd.ErrOrStderr()}
	if quiet {
		v.notes, v.live, v.isQuiet = &page{w: io.Discard, column: &column{}}, false, true
	}
	if e.json {
		v.json = cmd.OutOrStdout()
	}
	return v
}

// hideAnswer shows everything but the agent's answer.
func (v *viewer) hideAnswer() {
	v.answer, v.live = &page{w: io.Discard, column: &column{}}, false
}

// watch shows the events of a stream until it ends.
func (v *viewer) watch(events iter.Seq2[client.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if err := v.showEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// showEvent shows one event, and records its cursor, its run, and the last event of a run.
func (v *viewer) showEvent(e client.Event) error {
	if e.Cursor != "" {
		v.after = e.Cursor
	}
	if started, ok := e.Event.(*agui.RunStarted); ok {
		v.run = started.RunID
	}
	if v.json == nil {
		v.show(e)
		return nil
	}
	if e.Ends() {
		v.last = e
	}
	return eventLine(v.json, e.Cursor, e.JSON)
}

// watchNext follows the thread until its next run has ended, for instance the run that continues
// after decisions.
func (v *viewer) watchNext(ctx context.Context) error {
	for e, err := range v.client.Follow(ctx, v.thread, client.FollowOptions{After: v.after}) {
		if err != nil {
			return err
		}
		if err := v.showEvent(e); err != nil || e.Ends() {
			return err
		}
	}
	return nil
}

// onInterrupt returns the context for watching a run. Without cancelRun it is ctx, which ends
// with Ctrl-C. With cancelRun, Ctrl-C cancels the run, and the returned context continues, so that
// the end of the run is shown. The caller must call stop, which waits for the request to cancel. A
// second Ctrl-C ends the process.
func (v *viewer) onInterrupt(ctx context.Context, cancelRun bool) (watching context.Context, stop func()) {
	if !cancelRun {
		return ctx, func() {}
	}
	watching, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	cancelled := make(chan struct{})
	unlisten := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		ctx, end := context.WithTimeout(watching, cancelTimeout)
		defer end()
		if err := v.client.Cancel(ctx, v.thread, v.run, ""); err != nil {
			leave(fmt.Errorf("the run was not cancelled: %w", err))
		}
	})
	return watching, func() {
		if !unlisten() {
			<-cancelled
		}
		leave(nil)
	}
}

// printContinuation prints how to return to the run if the command ended before the run did, by
// Ctrl-C or a lost server. It returns err.
func (v *viewer) printContinuation(err error) error {
	code := exitCode(err)
	if code != exitInterrupted && (code != exitUnreachable || v.after == "") {
		return err
	}
	v.endLine()
	options := ""
	if v.after != "" {
		options = " --after " + v.after
	}
	fmt.Fprintf(v.notices, "The run continues. Show it with: perdure tail %s%s\n", v.thread, options)
	return err
}

// endLine ends the line in which the terminal shows ^C.
func (v *viewer) endLine() {
	if v.notes.terminal {
		fmt.Fprintln(v.notices)
		return
	}
	v.answer.end()
}

// hasInterrupts reports whether the last run has ended with interrupts.
func (v *viewer) hasInterrupts() bool { return len(interrupts(v.last)) > 0 }

// decideAll asks the user at the terminal to decide the interrupts of the last run, except those that
// wait for a time or an event. With wait it does not ask: the decisions are made elsewhere. continues
// reports whether another run of the thread is to be expected: all others are decided, or wait is set.
func (v *viewer) decideAll(ctx context.Context, cmd *cobra.Command, wait bool) (continues bool, err error) {
	interactive := v.json == nil && isTerminal(cmd.InOrStdin()) && isTerminal(cmd.ErrOrStderr())
	if wait {
		return true, nil
	}
	open := slices.DeleteFunc(slices.Clone(interrupts(v.last)), func(i agui.Interrupt) bool { return client.WaitOf(i) != nil })
	if !interactive {
		if len(open) > 0 {
			v.notes.writeLine("", dim, "Decide with perdure approve, reject or answer, and the ID.")
		} else {
			v.notes.writeLine("", dim, "The run continues by itself. Follow it with: perdure tail %s", v.thread)
		}
		return false, nil
	}
	if v.questions == nil {
		v.questions = newQuestions(cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	allDecided := true
	for _, i := range open {
		decided, err := v.askUser(ctx, i)
		if err != nil {
			return false, err
		}
		allDecided = allDecided && decided
	}
	return allDecided, nil
}

// askUser asks about one interrupt until the server accepts a decision. decided is false if the
// user leaves the interrupt open, or if a quorum needs more votes.
func (v *viewer) askUser(ctx context.Context, i agui.Interrupt) (decided bool, err error) {
	for {
		d, err := v.questions.askDecision(ctx, v.describe(i), i)
		if err != nil || d == nil {
			return false, err
		}
		d.ThreadID, d.ID = v.thread, i.ID
		results, err := v.client.Decide(ctx, *d)
		if err != nil {
			return false, err
		}
		for _, r := range results {
			switch {
			case r.Err() == nil && r.Missing > 0:
				v.notes.writeLine("", dim, "%s", describeVote(r))
				return false, nil
			case r.Err() == nil, r.Code == "decided", r.Code == "expired":
				return true, nil
			}
			v.notes.writeLine("", alarm, "%s", oneLine(r.Err().Error(), maxQuotedChars))
		}
	}
}

// describe describes an interrupt in one line: its message, or the call with its arguments.
func (v *viewer) describe(i agui.Interrupt) string {
	c := v.calls[i.ToolCallID]
	switch {
	case c == nil, i.Reason != "tool_call", c.name == approveTool && !hasMembers(c.args.String()):
		return oneLine(i.Message, 2000)
	case c.name == approveTool:
		return oneLine(i.Message+" "+c.args.String(), 2000)
	}
	return oneLine(c.name+" "+c.args.String(), 2000)
}
