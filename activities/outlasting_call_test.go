package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// TestCallWithCompensationIsNotCancelled: a call with a compensation is not cancelled with
// its run, on the main path and in branches, so that its effect is known. A call that has not begun
// is not made.
func TestCallWithCompensationIsNotCancelled(t *testing.T) {
	t.Parallel()
	const pay = `{name: pay, tool: pay, compensate: {tool: note, args: {note: "refund ${steps.pay}"}}}`
	for name, c := range map[string]struct {
		steps     string
		wantNotes []string
	}{
		"on the main path": {`
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - ` + pay + `
  - {name: two, tool: note, args: {note: "two"}, compensate: {tool: note, args: {note: "undo two"}}}`,
			[]string{"one", "refund paid", "undo one"}},
		"in a branch": {`
  - name: all
    parallel: [` + pay + `, {name: two, tool: hang}]`,
			[]string{"refund paid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &callJournal{}
			var f *fixture
			pay := tools.Func("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
				cut, release := f.acts.Commands.Context(context.WithoutCancel(ctx), run)
				defer release()
				_, err := f.log.RequestCancel(context.WithoutCancel(ctx), run, stream.Cancel{})
				if err = errors.Join(err, f.log.AnnounceCancel(run)); err != nil {
					t.Error(err)
				}
				f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
				<-cut.Done() // until the rest of the run is cancelled
				return "paid", ctx.Err()
			})
			hang := tools.Func("hang", "hangs", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
			f = setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("never") }, j.tool(), pay, hang)
			f.agent = parseDefinition(t, "name: a\nmodel: test/m\ntools: [note, pay, hang]\nsteps:\n"+c.steps)
			events, result := f.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
			j.wantEntries(t, c.wantNotes...)
			f.wantShownConversation(events)
		})
	}
}
