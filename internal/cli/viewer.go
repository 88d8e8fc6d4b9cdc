package cli

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// viewer shows runs of one thread.
type viewer struct {
	*transcript
	client      *client.Client
	json        io.Writer // --json; nil otherwise
	notices     io.Writer // for the last message of the command
	questions   *questions
	thread, run string
	after       string // the cursor of the last event
}

func (e *environment) viewer(cmd *cobra.Command, c *client.Client, quiet bool) *viewer {
	answer, notes := e.pages(cmd.OutOrStdout(), cmd.ErrOrStderr())
	if quiet {
		notes = &page{w: io.Discard, column: &column{}}
	}
	v := &viewer{client: c, transcript: newTranscript(answer, notes), notices: cmd.ErrOrStderr()}
	if e.json {
		v.json = cmd.OutOrStdout()
	}
	return v
}

// watch shows a stream until it ends.
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

func (v *viewer) showEvent(e client.Event) error {
	if e.Cursor != "" {
		v.after = e.Cursor
	}
	if begun, ok := e.Event.(*agui.RunStarted); ok {
		v.run = begun.RunID
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

// watchNext shows the next run of the thread.
func (v *viewer) watchNext(ctx context.Context) error {
	for e, err := range v.client.Follow(ctx, v.thread, client.Following{After: v.after}) {
		if err != nil {
			return err
		}
		if err := v.showEvent(e); err != nil || e.Ends() {
			return err
		}
	}
	return nil
}

// whenInterrupted returns a context that ends with Ctrl-C. The run continues, or is cancelled. A
// second Ctrl-C ends the process.
func (v *viewer) whenInterrupted(ctx context.Context, cancels bool) (watching context.Context, stop func()) {
	if !cancels {
		return ctx, func() {}
	}
	watching, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	cancelled := make(chan struct{})
	unlisten := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		ctx, end := context.WithTimeout(watching, cancelPatience)
		defer end()
		if err := v.client.Cancel(ctx, v.thread, v.run, ""); err != nil {
			leave(fmt.Errorf("the run is not cancelled: %w", err))
		}
	})
	return watching, func() {
		if !unlisten() {
			<-cancelled
		}
		leave(nil)
	}
}

// left reports how to return to a run that continues.
func (v *viewer) left(err error) error {
	code := codeOf(err)
	if code != exitLeft && (code != exitUnreachable || v.after == "") {
		return err
	}
	v.endLine()
	behind := ""
	if v.after != "" {
		behind = " --after " + v.after
	}
	fmt.Fprintf(v.notices, "The run goes on. Come back with: perdure tail %s%s\n", v.thread, behind)
	return err
}

// endLine ends the line in which Ctrl-C was pressed.
func (v *viewer) endLine() {
	if v.notes.terminal {
		fmt.Fprintln(v.notices)
		return
	}
	v.answer.end()
}

// waits reports whether the last run waits for decisions.
func (v *viewer) waits() bool { return len(interrupts(v.last)) > 0 }

// decide asks for decisions of the last run's interrupts on the terminal or, with wait, waits until
// they are made elsewhere. It reports whether the thread continues.
func (v *viewer) decide(ctx context.Context, cmd *cobra.Command, wait bool) (goesOn bool, err error) {
	asks := v.json == nil && isTerminal(cmd.InOrStdin()) && isTerminal(cmd.ErrOrStderr())
	if wait {
		return true, nil
	}
	if !asks {
		v.notes.line("", dim, "Decide with: perdure approve, reject or answer, and the id.")
		return false, nil
	}
	if v.questions == nil {
		v.questions = newQuestions(cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	all := true
	for _, i := range interrupts(v.last) {
		settled, err := v.ask(ctx, i)
		if err != nil {
			return false, err
		}
		all = all && settled
	}
	return all, nil
}

// ask asks about an interrupt until the server accepts a decision, or the person leaves it open.
func (v *viewer) ask(ctx context.Context, i agui.Interrupt) (settled bool, err error) {
	for {
		d, err := v.questions.decision(ctx, v.about(i), i)
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
				v.notes.line("", dim, "%s", describeVote(r))
				return false, nil
			case r.Err() == nil, r.Code == "decided", r.Code == "expired":
				return true, nil
			}
			v.notes.line("", alarm, "%s", line(r.Err().Error(), longest))
		}
	}
}

// about describes an interrupt.
func (v *viewer) about(i agui.Interrupt) string {
	c := v.calls[i.ToolCallID]
	switch {
	case c == nil, i.Reason != "tool_call", c.name == approveTool && !hasMembers(c.args.String()):
		return line(i.Message, 2000)
	case c.name == approveTool:
		return line(i.Message+" "+c.args.String(), 2000)
	}
	return line(c.name+" "+c.args.String(), 2000)
}
