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

// calling replaces the activity that makes calls.
func (e *fixture) calling(do func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error)) {
	e.env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: runs.ActivityCallTool, DisableAlreadyRegisteredCheck: true})
}

// counting counts the advances that are separate activities.
func (e *fixture) counting() *atomic.Int32 {
	var n atomic.Int32
	e.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
		if activity.GetInfo(ctx).Attempt == 1 {
			n.Add(1)
		}
		return e.acts.Advance(ctx, in)
	}, activity.RegisterOptions{Name: runs.ActivityAdvance, DisableAlreadyRegisteredCheck: true})
	return &n
}

const three = `
  - {name: one, tool: note, args: {note: "one"}}
  - {name: sum, set: {/sum: "${steps.one}"}}
  - {name: two, tool: note, args: {note: "two", fail: true}, onError: continue}
  - {name: three, tool: note, args: {note: "${steps.two.error.code}"}}`

// TestDeathsAfterACall: a worker may die before, during or after the advance that follows a call.
// No call is made again, and readers are shown the same as without a death. If the last attempt did
// not advance, the call fails for the workflow.
func TestDeathsAfterACall(t *testing.T) {
	t.Parallel()
	calm, _ := setupPipeline(t, echo, three)
	shown, _ := calm.run("go")
	// before, while and after leave the log as an attempt does that dies at that point.
	before := func(e *fixture, ctx context.Context, in runs.ToolCall) error {
		in.Chained = nil
		_, err := e.acts.CallTool(ctx, in)
		return err
	}
	while := func(e *fixture, ctx context.Context, in runs.ToolCall) error {
		chained := *in.Chained
		in.Chained = nil
		answer, err := e.acts.CallTool(ctx, in)
		if err != nil {
			return err
		}
		attempt, _, err := e.log.Begin(ctx, stream.Place{Run: run, Lane: stream.LaneMain, Step: chained.ID, Execution: in.Execution, After: answer.Opened})
		if err == nil {
			attempt.Close()
		}
		return err
	}
	after := func(e *fixture, ctx context.Context, in runs.ToolCall) error {
		answer, err := e.acts.CallTool(ctx, in)
		if answer.Advanced == nil {
			t.Error("the call has made no advance")
		}
		return err
	}
	for name, c := range map[string]struct {
		dies  func(e *fixture, ctx context.Context, in runs.ToolCall) error
		last  bool // no further attempt
		code  string
		notes []string
		asked int32
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
			e, j := setupPipeline(t, echo, three)
			e.calling(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
				switch {
				case in.Chained == nil:
					t.Errorf("call %s has no chained advance", in.ID)
				case activity.GetInfo(ctx).Attempt > 1:
					return e.acts.CallTool(ctx, in)
				}
				if err := c.dies(e, ctx, in); err != nil {
					t.Error(err)
				}
				return runs.ToolAnswer{}, temporal.NewApplicationErrorWithOptions("the worker died", "gone", temporal.ApplicationErrorOptions{NonRetryable: c.last})
			})
			asked := e.counting()
			events, _ := e.run("go")
			if code := failureOf(events); code != c.code || asked.Load() != c.asked {
				t.Errorf("got the code %q and %d advances: %s", code, asked.Load(), typesOf(events))
			}
			if c.code == "" && typesOf(events) != typesOf(shown) {
				t.Errorf("events: got\n%s, want\n%s", typesOf(events), typesOf(shown))
			}
			j.want(t, c.notes...)
			e.wantAsShown(events)
		})
	}
}

// TestACallWhoseAdvanceFails: the chained advance is an optimization. If it fails, the call does
// not fail, and a separate activity advances.
func TestACallWhoseAdvanceFails(t *testing.T) {
	t.Parallel()
	var e *fixture
	calls := 0
	tool := tools.Func("note", "notes", func(_ context.Context, in note) (string, error) {
		calls++
		e.outage.Store(3)
		return in.Note, nil
	})
	e = setup(t, echo, tool)
	e.agent = parsed(t, "name: a\nmodel: test/m\ntools: [note]\nsteps:\n"+`
  - {name: one, tool: note, args: {note: "one"}}
  - {name: two, tool: note, args: {note: "two"}}`)
	asked := e.counting()
	events, result := e.run("go")
	if result.Outcome != runs.OutcomeSuccess || calls != 2 || asked.Load() != 3 {
		t.Errorf("got %+v, %d calls and %d separate advances", result, calls, asked.Load())
	}
	e.wantState(`{"steps":{"one":"one","two":"two"}}`)
	e.wantAsShown(events)
}

// TestCancelledAfterACall: a run that is cancelled, and whose worker dies, right after a call
// compensates for that call too.
func TestCancelledAfterACall(t *testing.T) {
	t.Parallel()
	e, j := setupPipeline(t, echo, `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, tool: note, args: {note: "two"}}`)
	e.calling(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		answer, err := e.acts.CallTool(ctx, in)
		if err != nil || in.Compensates {
			return answer, err
		}
		e.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
		return answer, temporal.NewNonRetryableApplicationError("the worker died", "gone", errors.New("why"))
	})
	events, result := e.run("go")
	if result.Outcome != runs.OutcomeCancelled {
		t.Errorf("got %+v: %s", result, typesOf(events))
	}
	j.want(t, "one", "undo one")
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
	e.wantAsShown(events)
}
