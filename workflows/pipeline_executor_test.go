package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// eventsByPath gives answers by path: JSON; !code for a failure of the step; ? for a step that
// finds the run cancelled; *code for a failure of its activity.
func eventsByPath(answers map[string]string) func(string) (pipeline.Event, error) {
	return func(path string) (pipeline.Event, error) {
		switch a := answers[path]; {
		case a == "":
			return doneEvent(`"ok"`), nil
		case a == "?":
			return cancelledEvent, nil
		case a[0] == '!':
			return failedEvent(a[1:]), nil
		case a[0] == '*':
			return pipeline.Event{}, errors.New(a[1:])
		default:
			return doneEvent(a), nil
		}
	}
}

// wantResult checks the outcome, the code and the executed paths, in their order.
func (f *pipelineFixture) wantResult(result runs.Result, outcome runs.Outcome, code string, wantPaths ...string) {
	f.t.Helper()
	if result.Outcome != outcome || result.Code != code {
		f.t.Errorf("got %+v, want %s %s", result, outcome, code)
	}
	if diff := cmp.Diff(wantPaths, f.executedPaths, cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("paths (-want +got):\n%s", diff)
	}
}

// cancelRun cancels the current run, before anything else happens to it.
func (f *pipelineFixture) cancelRun() {
	f.execution.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: f.executions[len(f.executions)-1].Run.ID})
}

// TestPipelineRunsStepsInOrder: the workflow advances the tree before and after each action. Each
// advance has all that the interpreter needs.
func TestPipelineRunsStepsInOrder(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: plan, agent: {instructions: x}}
  - {name: look, tool: search}
  - {name: note, set: {/note: "${steps.plan} ${steps.look}"}}
  - {name: write, agent: writer}
`)
	fixture.executeStep = eventsByPath(map[string]string{"plan": `"abc"`, "look": `7`})
	result := fixture.runToEnd(stepsInput())
	fixture.wantResult(result, runs.OutcomeSuccess, "", "plan", "look", "write")
	if want := `{"n":0,"perdure.steps":{"plan":"abc","look":7,"write":"ok"},"note":"abc 7"}`; !equalJSON(string(fixture.state), want) {
		t.Errorf("state: got %s, want %s", fixture.state, want)
	}
	var ids []string
	for i, a := range fixture.advances {
		ids = append(ids, a.ID)
		begins := a.Beginning == (runs.Beginning{Input: 1, Digest: "d"})
		wantEqual(t, fmt.Sprintf("advance %d begins the run", i), begins, i == 0)
		wantEqual(t, fmt.Sprintf("advance %d: position origin", i), a.Position.Origin, "r")
		wantEqual(t, fmt.Sprintf("advance %d: position input", i), a.Position.Input, 1)
		wantEqual(t, fmt.Sprintf("advance %d: is a compensation", i), a.Compensates, false)
		wantEqual(t, fmt.Sprintf("advance %d has no time", i), a.Now.IsZero(), false)
		wantEqual(t, fmt.Sprintf("advance %d: agent", i), a.Agent, "a")
		if a.PipelineStep != nil {
			t.Errorf("advance %d: place = %+v, want nil", i, a.PipelineStep)
		}
	}
	wantEqual(t, "IDs of the advances", ids, []string{"advance/1", "advance/2", "advance/3", "advance/4"})
	if kinds := advanceKinds(fixture.advances); kinds != "begun done done done" {
		t.Errorf("events of the advances: got %s, want begun done done done", kinds)
	}
	end := fixture.finished[0]
	wantEqual(t, "end of the run: first step", end.First, "advance/1")
	mustEqual(t, "end of the run: number of models in the usage", len(end.Usage), 1)
	wantEqual(t, "tokens of the run", *end.Usage[0].Total, 2)
	wantEqual(t, "end of the run: number of unfinished lanes", len(end.Unfinished), 0)
	models := fixture.execution.modelCalls
	wantEqual(t, "ID of the first model call", models[0].ID, "plan/1/model")
	wantEqual(t, "name of the first model call", models[0].Name, "plan/model")
	wantEqual(t, "ID of the second model call", models[1].ID, "write/3/model")
	wantEqual(t, "path of the first model call", models[0].PipelineStep.Path, "plan")
	wantEqual(t, "input of the first model call", models[0].Input, 0)
}

// advanceKinds returns the kinds of the events that the advances took.
func advanceKinds(advances []runs.AdvanceInput) string {
	var kinds []string
	for _, a := range advances {
		kind := "reopens"
		switch {
		case len(a.Suspended) > 0:
			kind = "suspends"
		case !a.Resumes:
			kind = string(a.Position.Event.Kind)
		}
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}

const booking = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, agent: payer, compensate: {agent: {instructions: x}}}
  - {name: ship, tool: ship}
`

// TestFailedSteps: failures of steps, activities, agents and compensations, with each way to
// handle them.
func TestFailedSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps     string
		events    map[string]string
		wantCode  string
		wantPaths string
	}{
		"a tool":         {booking, map[string]string{"ship": "!lost"}, "lost", "book pay ship pay~undo book~undo"},
		"its activity":   {booking, map[string]string{"ship": "*lost"}, "lost", "book pay ship pay~undo book~undo"},
		"an agent":       {booking, map[string]string{"pay": "*poor"}, "poor", "book pay book~undo"},
		"a compensation": {booking, map[string]string{"ship": "!lost", "pay~undo": "*stuck"}, "lost", "book pay ship pay~undo book~undo"},
		"onError": {`
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two, onError: {steps: [{name: instead, agent: other}]}}
  - {name: three, tool: three, when: steps.one.error.code == "gone"}
`, map[string]string{"one": "*gone", "two": "*away"}, "", "one two two~error/instead three"},
		"tried again": {`
steps:
  - {name: one, agent: one, retry: {attempts: 3, interval: 5m, backoff: 2}}
  - {name: two, tool: two, retry: {attempts: 2, interval: 5m}}
`, map[string]string{"one": "*x", "one~2": "*y", "two": "!z", "two~2": "!last"}, "last", "one one~2 one~3 two two~2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, c.steps)
			fixture.executeStep = eventsByPath(c.events)
			outcome := runs.OutcomeSuccess
			if c.wantCode != "" {
				outcome = runs.OutcomeError
			}
			fixture.wantResult(fixture.runToEnd(stepsInput()), outcome, c.wantCode, strings.Fields(c.wantPaths)...)
			for i, a := range fixture.advances { // compensations are marked as such
				undoing := a.Position.TreePosition.Undoing != nil
				wantEqual(t, fmt.Sprintf("advance %d: is a compensation", i), a.Compensates, undoing)
			}
		})
	}
}

// TestRetryInterval: the workflow waits between attempts, as the step's `retry` defines.
func TestRetryInterval(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `steps: [{name: one, tool: one, retry: {attempts: 3, interval: 5m, backoff: 2}}]`)
	var at []time.Time
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		at = append(at, fixture.execution.env.Now())
		return failedEvent("x"), nil
	}
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, "x", "one", "one~2", "one~3")
	for i, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
		if took := at[i+1].Sub(at[i]); took < pause || took > pause+time.Minute {
			t.Errorf("pause %d took %s, want %s", i, took, pause)
		}
	}
	kinds := advanceKinds(fixture.advances)
	wantEqual(t, "events of the advances", kinds, "begun done woken done woken done")
}

// TestStepTimeout: a step's timeout bounds its activities, in addition to the run's
// deadline.
func TestStepTimeout(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `steps: [{name: all, timeout: 10m, onError: continue, steps: [{name: one, agent: one}, {name: two, tool: two}]}, {name: three, tool: three}]`)
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "all/one" {
			return pipeline.Event{}, temporal.NewTimeoutError(0, nil)
		}
		return doneEvent(`1`), nil
	}
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "all/one", "three")
	if active := fixture.advances[1].Position.Active; active == nil || active.Deadline.Sub(fixture.advances[0].Now) != 10*time.Minute {
		t.Errorf("active step: got %+v, want a deadline after 10m", active)
	}
	if failure := fixture.advances[1].Position.Event.Failure; failure == nil || failure.Code != "timeout" {
		t.Errorf("failure: got %+v, want timeout", failure)
	}
}

// TestCancelledRunCompensates: a cancelled run compensates for its work in reverse order. The
// compensations are not cancelled.
func TestCancelledRunCompensates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events    map[string]string
		cancelAt  string // where the run is cancelled
		wantPaths string
	}{
		"in a call":               {map[string]string{"ship": "?"}, "ship", "book pay ship pay~undo book~undo"},
		"in an agent":             {map[string]string{"pay": "?"}, "pay", "book pay book~undo"},
		"as a call ends":          {nil, "book", "book book~undo"},
		"as an agent ends":        {nil, "pay", "book pay pay~undo book~undo"},
		"as a call fails":         {map[string]string{"ship": "*lost"}, "ship", "book pay ship pay~undo book~undo"},
		"in a compensation":       {map[string]string{"ship": "!lost"}, "pay~undo", "book pay ship pay~undo book~undo"},
		"before any step is done": {map[string]string{"book": "?"}, "book", "book"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, booking)
			fixture.executeStep = func(path string) (pipeline.Event, error) {
				if path == c.cancelAt {
					fixture.cancelRun()
				}
				return eventsByPath(c.events)(path)
			}
			fixture.wantCancelled(fixture.runToEnd(stepsInput()), c.wantPaths)
			alone := len(fixture.advances) == 1
			wantEqual(t, "only one advance", alone, c.wantPaths == "book")
		})
	}
}

// wantCancelled fails the test unless the work before the cancel was compensated, in activities
// that ignore the cancel.
func (f *pipelineFixture) wantCancelled(result runs.Result, did string) {
	f.t.Helper()
	f.wantResult(result, runs.OutcomeCancelled, "", strings.Fields(did)...)
	for _, m := range f.execution.modelCalls {
		undoes := strings.Contains(m.PipelineStep.Path, "~undo")
		wantEqual(f.t, "model call: is a compensation", m.Compensates, undoes)
	}
}

// TestCancelledAdvance: after a cancelled advance the workflow finds out whether its record was
// written. The result of the cancel follows that record. If the workflow cannot find out, the run
// ends.
func TestCancelledAdvance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancelAt                 string // the advance
		failsBefore, wantWritten bool   // before or after the record is written
		wantPaths                string
	}{
		"first":   {"advance/1", true, false, ""},
		"written": {"advance/3", false, true, "book pay pay~undo book~undo"},
		"unknown": {"advance/3", true, false, "book pay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, booking)
			attempts := 0
			cancel := func(in runs.AdvanceInput) error {
				if in.ID != c.cancelAt {
					return nil
				}
				fixture.cancelRun()
				if attempts++; attempts > 1 && c.wantWritten {
					return nil
				}
				return temporal.NewCanceledError()
			}
			if c.failsBefore {
				fixture.failBeforeAdvance = cancel
			} else {
				fixture.failAfterAdvance = cancel
			}
			fixture.wantCancelled(fixture.runToEnd(stepsInput()), c.wantPaths)
			repeated := attempts > 1
			wantEqual(t, "the advance is repeated", repeated, name != "first")
		})
	}
}

// equalJSON reports whether two texts are the same JSON.
func equalJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// TestStepTimeoutEndsInterrupt: a step's timeout ends its interrupt.
func TestStepTimeoutEndsInterrupt(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]bool{"ended": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, `
steps:
  - {name: a, timeout: 20m, approve: {message: "May I?", expires: 1h}, onError: {steps: [{name: b, tool: t}]}}
  - {name: c, timeout: 30m, steps: [{name: d, approve: {message: "And now?"}}]}
`)
			fixture.withholdsDecisions = true
			in := stepsInput()
			in.Hold = hold
			if result := fixture.runToEnd(in); result.Outcome != runs.OutcomeError || result.Code != "timeout" {
				t.Errorf("got %+v, want the code timeout", result)
			}
			if !slices.Contains(fixture.executedPaths, "a~error/b") {
				t.Errorf("paths: got %q, want them to contain a~error/b", fixture.executedPaths)
			}
		})
	}
}
