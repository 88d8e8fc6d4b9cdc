package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// traceCommand returns "trace". Without a run it shows the last run of the thread.
func (e *environment) traceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "trace THREAD [RUN]", Short: "Show what a run did, with times, attempts and errors",
		Long: "Show the trace of a run, by default of the last one: turns, model calls, tool calls, steps and waits as a tree, each with its start after\nthat of the run, its duration, and its failed attempts.",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			var run string
			if len(args) > 1 {
				run = args[1]
			} else {
				t, err := c.Thread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				run = t.Value.RunID
			}
			trace, err := c.Trace(cmd.Context(), args[0], run)
			if err != nil {
				return err
			}
			if e.json {
				return document(cmd.OutOrStdout(), trace.JSON)
			}
			answer, _ := e.pages(cmd.OutOrStdout(), cmd.ErrOrStderr())
			newTraceTree(answer, &trace.Value).show()
			return nil
		},
	}
}

// traceTree prints a trace as a tree.
type traceTree struct {
	page     *page
	trace    *client.Trace
	children map[string][]*client.Span // by the ID of the parent; "" = the root
}

func newTraceTree(to *page, t *client.Trace) *traceTree {
	tree := &traceTree{page: to, trace: t, children: map[string][]*client.Span{}}
	for i := range t.Spans {
		s := &t.Spans[i]
		tree.children[s.ParentID] = append(tree.children[s.ParentID], s)
	}
	return tree
}

// show prints all spans.
func (t *traceTree) show() {
	if e := t.trace.Event; e != nil {
		t.page.writeLine("", dim, "started by the event %s", describeEvent(e))
	}
	for _, root := range t.children[""] {
		t.showSpan(root, "", "")
	}
	if t.trace.Truncated {
		t.page.writeLine("", dim, "… more spans are left out")
	}
}

// showSpan prints a span and those within it. first is the indentation of its line, rest that of the
// lines below it.
func (t *traceTree) showSpan(s *client.Span, first, rest string) {
	look := plain
	switch s.Status {
	case "failed":
		look = alarm
	case "running", "waiting":
		look = strong
	}
	t.page.writeLine(first, look, "%s", t.line(s))
	children := t.children[s.ID]
	below := rest + "   "
	if len(children) > 0 {
		below = rest + "│  "
	}
	for _, text := range notesOf(s) {
		t.page.writeLine(below, dim, "%s", text)
	}
	for i, child := range children {
		branch, next := "├─ ", "│  "
		if i == len(children)-1 {
			branch, next = "└─ ", "   "
		}
		t.showSpan(child, rest+branch, rest+next)
	}
}

// line returns the line of a span: kind, name, status, times and tokens.
func (t *traceTree) line(s *client.Span) string {
	parts := []string{s.Kind + " " + oneLine(s.Name, cellWidth)}
	if s.Kind == "turn" || s.Name == s.Kind {
		parts = []string{s.Name}
	}
	if s.Status != "finished" {
		parts = append(parts, s.Status)
	}
	if s.Decision != "" {
		parts = append(parts, s.Decision)
	}
	at := "+" + spanDuration(max(0, s.StartedAt.Sub(t.trace.StartedAt)))
	if s.EndedAt.IsZero() {
		parts = append(parts, at)
	} else {
		parts = append(parts, at, spanDuration(s.EndedAt.Sub(s.StartedAt)))
	}
	if u := s.Usage; u != nil && u.InputTokens != nil && u.OutputTokens != nil {
		parts = append(parts, fmt.Sprintf("%d+%d tokens", *u.InputTokens, *u.OutputTokens))
	}
	return strings.Join(parts, "  ")
}

// notesOf returns the lines below that of a span: its failed attempts, what it waits for, its error, and
// the retry.
func notesOf(s *client.Span) []string {
	var notes []string
	for _, a := range s.Attempts {
		text := fmt.Sprintf("attempt %d %s", a.Number, a.Status)
		if a.Model != "" && a.Model != s.Model {
			text = fmt.Sprintf("attempt %d, %s, %s", a.Number, oneLine(a.Model, maxQuotedChars), a.Status)
		}
		if !a.EndedAt.IsZero() {
			text += " after " + spanDuration(a.EndedAt.Sub(a.StartedAt))
		}
		if w := a.Wait; w != nil && !w.EndedAt.IsZero() {
			text += ", of which it waited " + spanDuration(w.EndedAt.Sub(w.StartedAt))
		} else if w != nil {
			text += ", waits for a limit of the provider"
		}
		if a.Error != nil {
			text += ": " + errorText(a.Error)
		}
		notes = append(notes, text)
		if w := a.Withdrawn; w != nil && w.Text != "" {
			notes = append(notes, "  withdrawn: "+oneLine(w.Text, maxQuotedChars))
		}
	}
	if w := s.Awaits; w != nil && s.EndedAt.IsZero() {
		notes = append(notes, oneLine(describeWait(w), maxQuotedChars))
	} else if w != nil {
		notes = append(notes, oneLine("waited"+strings.TrimPrefix(describeWait(w), "waits"), maxQuotedChars))
	}
	if s.Error != nil && len(s.Attempts) == 0 {
		notes = append(notes, errorText(s.Error))
	}
	if s.Error != nil && s.Error.Hint != "" {
		notes = append(notes, "hint: "+s.Error.Hint)
	}
	if r := s.Retry; r != nil {
		text := fmt.Sprintf("attempt %d follows", r.Attempt)
		if !r.NextAt.IsZero() {
			text += " at " + r.NextAt.Local().Format(time.TimeOnly)
		}
		notes = append(notes, text)
	}
	return notes
}

// errorText returns an error as one line.
func errorText(e *client.SpanError) string {
	return oneLine(strings.TrimSuffix(e.Code+": "+e.Message, ": "), maxQuotedChars)
}

// spanDuration returns a duration with up to three significant digits.
func spanDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
