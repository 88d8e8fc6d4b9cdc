package activities_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// replace replaces the activities of calls and advances; nil = it stays.
func (f *fixture) replace(
	call func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error), advance func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error),
) {
	f.env.RegisterActivityWithOptions(call, activity.RegisterOptions{Name: runs.ActivityCallTool, DisableAlreadyRegisteredCheck: true})
	if advance != nil {
		f.env.RegisterActivityWithOptions(advance, activity.RegisterOptions{Name: runs.ActivityAdvance, DisableAlreadyRegisteredCheck: true})
	}
}

const three = `
  - {name: one, tool: note, args: {note: "one"}}
  - {name: sum, set: {/sum: "${steps.one}"}}
  - {name: two, tool: note, args: {note: "two", fail: true}, onError: continue}
  - {name: three, tool: note, args: {note: "${steps.two.error.code}"}}`

// errDied ends an attempt whose worker has died.
var errDied = temporal.NewApplicationErrorWithOptions("the worker died", runs.ErrorWorkerLost, temporal.ApplicationErrorOptions{})

// loseAnswers makes the worker of the first attempt of each call and advance die after it has written
// its record.
func (f *fixture) loseAnswers() {
	var mu sync.Mutex
	died := map[string]bool{}
	dies := func(s runs.Step, err error) error {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || died[s.ID] {
			return err
		}
		died[s.ID] = true
		return errDied
	}
	f.replace(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		answer, err := f.acts.CallTool(ctx, in)
		return answer, dies(in.Step, err)
	}, func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
		next, err := f.acts.Advance(ctx, in)
		return next, dies(in.Step, err)
	})
}

// TestWorkerDiesAfterEachStep: a worker that dies after a call or an advance was recorded repeats
// neither, and readers are shown the same as without a death.
func TestWorkerDiesAfterEachStep(t *testing.T) {
	t.Parallel()
	calm, _ := setupPipeline(t, echoModel, three)
	shown, _ := calm.run("go")
	f, j := setupPipeline(t, echoModel, three)
	f.loseAnswers()
	events, _ := f.run("go")
	wantEqual(t, "code", failureOf(events), "")
	if typesOf(events) != typesOf(shown) {
		t.Errorf("events: got\n%s, want\n%s", typesOf(events), typesOf(shown))
	}
	j.wantEntries(t, "one", "two", "tool_failed")
	f.wantShownConversation(events)
}

// repeats checks that a step which is executed again has the same answer.
func repeats[In, Out any](t *testing.T, env *testsuite.TestActivityEnvironment, name string, in In, want Out) {
	t.Helper()
	value, err := env.ExecuteActivity(name, in)
	if err != nil {
		t.Errorf("%s again: %v", name, err)
		return
	}
	var got Out
	if err := value.Get(&got); err != nil {
		t.Error(err)
	}
	gotBody, err := runs.Encode(got)
	wantBody, wantErr := runs.Encode(want)
	wantEqual(t, "errors of the encoding", errors.Join(err, wantErr), nil)
	wantEqual(t, name+" again", string(gotBody), string(wantBody))
}

// TestRepeatedSteps: a call or an advance that is executed again after its successors, because
// Temporal repeats a workflow task, has the recorded answer, and writes nothing.
func TestRepeatedSteps(t *testing.T) {
	t.Parallel()
	f, j := setupPipeline(t, echoModel, three)
	var mu sync.Mutex
	var again []func(env *testsuite.TestActivityEnvironment)
	later := func(repeat func(env *testsuite.TestActivityEnvironment)) {
		mu.Lock()
		defer mu.Unlock()
		again = append(again, repeat)
	}
	f.replace(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		answer, err := f.acts.CallTool(ctx, in)
		later(func(env *testsuite.TestActivityEnvironment) { repeats(t, env, runs.ActivityCallTool, in, answer) })
		return answer, err
	}, func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
		next, err := f.acts.Advance(ctx, in)
		later(func(env *testsuite.TestActivityEnvironment) { repeats(t, env, runs.ActivityAdvance, in, next) })
		return next, err
	})
	f.run("go")
	last, err := f.log.LastOf(t.Context(), run.Thread)
	if err != nil {
		t.Fatal(err)
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	f.acts.Register(env)
	if len(again) < 7 {
		t.Errorf("calls and advances: got %d, want at least 7", len(again))
	}
	for _, repeat := range again {
		repeat(env)
	}
	if after, err := f.log.LastOf(t.Context(), run.Thread); after != last || err != nil {
		t.Errorf("last record: got %d and %v, want %d", after, err, last)
	}
	j.wantEntries(t, "one", "two", "tool_failed")
}

// TestCancelAfterCallCompensates: a run that is cancelled, and whose worker dies, right after a
// call compensates for that call too.
func TestCancelAfterCallCompensates(t *testing.T) {
	t.Parallel()
	fixture, j := setupPipeline(t, echoModel, `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, tool: note, args: {note: "two"}}`)
	died := false
	fixture.replace(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		answer, err := fixture.acts.CallTool(ctx, in)
		if err != nil || died {
			return answer, err
		}
		died = true
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
		return answer, errDied
	}, nil)
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

// TestRepeatedAdvanceAfterFailure: an advance after a failed call that is executed again, while the next
// call is under way, leaves the lane to that call.
func TestRepeatedAdvanceAfterFailure(t *testing.T) {
	t.Parallel()
	var repeat func()
	made := 0
	tool := tools.Func("note", "notes", func(context.Context, struct{}) (string, error) {
		made++
		repeat()
		return "done", nil
	})
	f := setup(t, echoModel, tool)
	f.agent = parseDefinition(t, "name: a\nmodel: test/m\ntools: [note]\nsteps:\n"+`
  - {name: one, tool: note, args: {}, onError: continue}
  - {name: two, tool: note, args: {}}`)
	f.replace(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.PipelineStep.Path == "one" {
			return runs.ToolAnswer{}, temporal.NewNonRetryableApplicationError("it broke", "broken", nil)
		}
		return f.acts.CallTool(ctx, in)
	}, func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
		next, err := f.acts.Advance(ctx, in)
		if in.FailedStep != nil {
			repeat = func() {
				env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
				f.acts.Register(env)
				repeats(t, env, runs.ActivityAdvance, in, next)
			}
		}
		return next, err
	})
	events, _ := f.run("go")
	wantEqual(t, "code", failureOf(events), "")
	wantEqual(t, "number of calls of the tool", made, 1)
}

// TestRepeatedFailedStep: a model call that failed for good, and is executed again after its successors,
// fails again. It does not end the run as one that another execution owns.
func TestRepeatedFailedStep(t *testing.T) {
	t.Parallel()
	f, _ := setupPipeline(t, echoModel, `
  - {name: one, agent: {instructions: i}, input: fail, onError: continue}
  - {name: two, tool: note, args: {note: "two"}}`)
	var failed []runs.ModelCall
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
		failed = append(failed, in)
		return f.acts.CallModel(ctx, in)
	}, activity.RegisterOptions{Name: runs.ActivityCallModel, DisableAlreadyRegisteredCheck: true})
	var repeated error
	f.replace(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		f.acts.Register(env)
		_, repeated = env.ExecuteActivity(runs.ActivityCallModel, failed[0])
		return f.acts.CallTool(ctx, in)
	}, nil)
	events, _ := f.run("go")
	wantEqual(t, "code", failureOf(events), "")
	mustEqual(t, "number of model calls", len(failed), 1)
	var app *temporal.ApplicationError
	if !errors.As(repeated, &app) || app.Type() == runs.ErrorFenced || !app.NonRetryable() {
		t.Errorf("error of the repeated model call: got %v, want that of a failed step", repeated)
	}
	wantEqual(t, "number of model calls", f.calls.Load(), 1)
}

// TestSteeringAfterLostAttempt: an attempt in a lost workflow task began, and made the call, before a
// steering message arrived. The answer tells that the call missed the message.
func TestSteeringAfterLostAttempt(t *testing.T) {
	t.Parallel()
	f := setup(t, echoModel)
	missed := map[string]int{}
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
		first, err := f.acts.CallModel(ctx, in)
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		f.acts.Register(env)
		call := func(name, id string, after uint64, steered ...uint64) uint64 {
			next := in
			next.ID, next.After, next.Closes, next.Beginning, next.Steered = id, after, in.Name, runs.Beginning{}, steered
			value, err := env.ExecuteActivity(runs.ActivityCallModel, next)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return 0
			}
			var answer runs.ModelAnswer
			if err := value.Get(&answer); err != nil {
				t.Error(err)
			}
			missed[name] = answer.Missed
			return answer.Seq
		}
		message := in.Beginning.Input
		lost := call("lost", "2/model", first.Seq)
		call("repeated", "2/model", first.Seq, message)
		steered := call("steered", "3/model", lost, message)
		call("steered, repeated", "3/model", lost, message)
		call("steered, repeated with another message", "3/model", lost, message, message+1)
		if first.Seq = steered; steered == 0 {
			t.Error("the steered call has no answer")
		}
		return first, err
	}, activity.RegisterOptions{Name: runs.ActivityCallModel, DisableAlreadyRegisteredCheck: true})
	f.run("go")
	if want := map[string]int{"lost": 0, "repeated": 1, "steered": 0, "steered, repeated": 0, "steered, repeated with another message": 1}; !maps.Equal(missed, want) {
		t.Errorf("messages that calls missed = %v, want %v", missed, want)
	}
	wantEqual(t, "number of model calls", f.calls.Load(), 3)
}
