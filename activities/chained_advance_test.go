package activities_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// replaceCallActivity replaces the activity that makes calls.
func (f *fixture) replaceCallActivity(do func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error)) {
	f.env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: runs.ActivityCallTool, DisableAlreadyRegisteredCheck: true})
}

// countAdvances counts the advances that are separate activities.
func (f *fixture) countAdvances() *atomic.Int32 {
	var n atomic.Int32
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
		if activity.GetInfo(ctx).Attempt == 1 {
			n.Add(1)
		}
		return f.acts.Advance(ctx, in)
	}, activity.RegisterOptions{Name: runs.ActivityAdvance, DisableAlreadyRegisteredCheck: true})
	return &n
}

const three = `
  - {name: one, tool: note, args: {note: "one"}}
  - {name: sum, set: {/sum: "${steps.one}"}}
  - {name: two, tool: note, args: {note: "two", fail: true}, onError: continue}
  - {name: three, tool: note, args: {note: "${steps.two.error.code}"}}`

// TestWorkerDiesAroundChainedAdvance: a worker may die before, during or after the advance that
// follows a call. No call is made again, and readers are shown the same as without a death. If the
// last attempt did not advance, the call fails for the workflow.
func TestWorkerDiesAroundChainedAdvance(t *testing.T) {
	t.Parallel()
	calm, _ := setupPipeline(t, echoModel, three)
	shown, _ := calm.run("go")
	// before, while and after leave the log as an attempt does that dies at that point.
	before := func(f *fixture, ctx context.Context, in runs.ToolCall) error {
		in.Chained = nil
		_, err := f.acts.CallTool(ctx, in)
		return err
	}
	while := func(f *fixture, ctx context.Context, in runs.ToolCall) error {
		chained := *in.Chained
		in.Chained = nil
		answer, err := f.acts.CallTool(ctx, in)
		if err != nil {
			return err
		}
		attempt, _, err := f.log.Begin(ctx, stream.Place{Run: run, Lane: stream.LaneMain, Step: chained.ID, Execution: in.Execution, After: answer.Opened})
		if err == nil {
			attempt.Close()
		}
		return err
	}
	after := func(f *fixture, ctx context.Context, in runs.ToolCall) error {
		answer, err := f.acts.CallTool(ctx, in)
		if answer.Advanced == nil {
			t.Error("advance of the call = nil, want a value")
		}
		return err
	}
	for name, c := range map[string]struct {
		die           func(f *fixture, ctx context.Context, in runs.ToolCall) error
		isLastAttempt bool // no further attempt
		wantCode      string
		wantNotes     []string
		wantAdvances  int32
	}{
		"before it advances":                   {before, false, "", []string{"one", "two", "tool_failed"}, 1},
		"while it advances":                    {while, false, "", []string{"one", "two", "tool_failed"}, 1},
		"after the advance":                    {after, false, "", []string{"one", "two", "tool_failed"}, 1},
		"before it advances, the last attempt": {before, true, "gone", []string{"one"}, 2},
		"while it advances, the last attempt":  {while, true, "gone", []string{"one"}, 2},
		"after the advance, the last attempt":  {after, true, "", []string{"one", "two", "tool_failed"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, j := setupPipeline(t, echoModel, three)
			f.replaceCallActivity(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
				switch {
				case in.Chained == nil:
					t.Errorf("chained advance of call %s = nil, want a value", in.ID)
				case activity.GetInfo(ctx).Attempt > 1:
					return f.acts.CallTool(ctx, in)
				}
				if err := c.die(f, ctx, in); err != nil {
					t.Error(err)
				}
				return runs.ToolAnswer{}, temporal.NewApplicationErrorWithOptions("the worker died", "gone", temporal.ApplicationErrorOptions{NonRetryable: c.isLastAttempt})
			})
			advances := f.countAdvances()
			events, _ := f.run("go")
			code := failureOf(events)
			wantEqual(t, "code", code, c.wantCode)
			wantEqual(t, "number of separate advances", advances.Load(), c.wantAdvances)
			if c.wantCode == "" && typesOf(events) != typesOf(shown) {
				t.Errorf("events: got\n%s, want\n%s", typesOf(events), typesOf(shown))
			}
			j.wantEntries(t, c.wantNotes...)
			f.wantShownConversation(events)
		})
	}
}

// TestFailedChainedAdvance: the chained advance is an optimization. If it fails, the call does
// not fail, and a separate activity advances.
func TestFailedChainedAdvance(t *testing.T) {
	t.Parallel()
	var f *fixture
	calls := 0
	tool := tools.Func("note", "notes", func(_ context.Context, in journalEntry) (string, error) {
		calls++
		f.outage.Store(3)
		return in.Note, nil
	})
	f = setup(t, echoModel, tool)
	f.agent = parseDefinition(t, "name: a\nmodel: test/m\ntools: [note]\nsteps:\n"+`
  - {name: one, tool: note, args: {note: "one"}}
  - {name: two, tool: note, args: {note: "two"}}`)
	advances := f.countAdvances()
	events, result := f.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of calls", calls, 2)
	wantEqual(t, "number of separate advances", advances.Load(), 3)
	f.wantState(`{"perdure.steps":{"one":"one","two":"two"}}`)
	f.wantShownConversation(events)
}

// TestCancelAfterCallCompensates: a run that is cancelled, and whose worker dies, right after a
// call compensates for that call too.
func TestCancelAfterCallCompensates(t *testing.T) {
	t.Parallel()
	fixture, j := setupPipeline(t, echoModel, `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, tool: note, args: {note: "two"}}`)
	fixture.replaceCallActivity(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		answer, err := fixture.acts.CallTool(ctx, in)
		if err != nil || in.Compensates {
			return answer, err
		}
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
		return answer, temporal.NewNonRetryableApplicationError("the worker died", "gone", errors.New("why"))
	})
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	j.wantEntries(t, "one", "undo one")
	var steps []string
	for _, ev := range events {
		switch ev := ev.(type) {
		case *agui.StepStarted:
			steps = append(steps, "+"+ev.StepName)
		case *agui.StepFinished:
			steps = append(steps, "-"+ev.StepName)
		}
	}
	if want := []string{"+one", "+one/tools", "-one/tools", "-one", "+two"}; !slices.Equal(steps[:min(5, len(steps))], want) {
		t.Errorf("steps: got %q, want the first to be %q", steps, want)
	}
	fixture.wantShownConversation(events)
}
