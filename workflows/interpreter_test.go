package workflows_test

import (
	"encoding/json"
	"errors"
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

// byPath gives answers by path: JSON; !code for a failure of the step; ? for a step that finds the
// run cancelled; *code for a failure of its activity.
func byPath(answers map[string]string) func(string) (pipeline.Event, error) {
	return func(path string) (pipeline.Event, error) {
		switch a := answers[path]; {
		case a == "":
			return done(`"ok"`), nil
		case a == "?":
			return stopped, nil
		case a[0] == '!':
			return failed(a[1:]), nil
		case a[0] == '*':
			return pipeline.Event{}, errors.New(a[1:])
		default:
			return done(a), nil
		}
	}
}

func (k *pipelineFixture) want(result runs.Result, outcome runs.Outcome, code string, did ...string) {
	k.t.Helper()
	if result.Outcome != outcome || result.Code != code {
		k.t.Errorf("got %+v, want %s %s", result, outcome, code)
	}
	if diff := cmp.Diff(did, k.did, cmpopts.EquateEmpty()); diff != "" {
		k.t.Errorf("paths (-want +got):\n%s", diff)
	}
}

// cancel cancels the current run, before anything else happens to it.
func (k *pipelineFixture) cancel() {
	k.fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: k.runs[len(k.runs)-1].Run.ID})
}

// TestStepsAreWalked: the workflow advances the tree before and after each action. Each advance has
// all that the interpreter needs.
func TestStepsAreWalked(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: plan, agent: {instructions: x}}
  - {name: look, tool: search}
  - {name: note, set: {/note: "${steps.plan} ${steps.look}"}}
  - {name: write, agent: writer}
`)
	k.answer = byPath(map[string]string{"plan": `"abc"`, "look": `7`})
	result := k.walk(stepsInput())
	k.want(result, runs.OutcomeSuccess, "", "plan", "look", "write")
	if want := `{"n":0,"steps":{"plan":"abc","look":7,"write":"ok"},"note":"abc 7"}`; !sameJSON(string(k.state), want) {
		t.Errorf("state: got %s, want %s", k.state, want)
	}
	var ids []string
	for i, a := range k.advances {
		ids = append(ids, a.ID)
		begins := a.Beginning == (runs.Beginning{Input: 1, Digest: "d"})
		if begins != (i == 0) || a.Position.Origin != "r" || a.Position.Input != 1 || a.Compensates || a.Now.IsZero() || a.Agent != "a" || a.Place != nil {
			t.Errorf("advance %d: got %+v", i, a)
		}
	}
	if !slices.Equal(ids, []string{"advance/1", "advance/2", "advance/3", "advance/4"}) {
		t.Errorf("IDs of the advances: got %q", ids)
	}
	if kinds := kindsOf(k.advances); kinds != "begun done done done" {
		t.Errorf("events of the advances: got %s, want begun done done done", kinds)
	}
	end := k.finishes[0]
	if end.First != "advance/1" || len(end.Usage) != 1 || *end.Usage[0].Total != 2 || len(end.Unfinished) != 0 {
		t.Errorf("end of the run: got %+v", end)
	}
	models := k.fixture.models
	if models[0].ID != "plan/1/model" || models[0].Name != "plan/model" || models[1].ID != "write/3/model" || models[0].Place.Path != "plan" || models[0].Input != 0 {
		t.Errorf("model calls: got %+v", models)
	}
}

func kindsOf(advances []runs.AdvanceInput) string {
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

// TestStepsThatFail: failures of steps, activities, agents and compensations, with each way to
// handle them.
func TestStepsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps   string
		answers map[string]string
		code    string
		did     string
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
			k := setupPipeline(t, c.steps)
			k.answer = byPath(c.answers)
			outcome := runs.OutcomeSuccess
			if c.code != "" {
				outcome = runs.OutcomeError
			}
			k.want(k.walk(stepsInput()), outcome, c.code, strings.Fields(c.did)...)
			for i, a := range k.advances { // compensations are marked as such
				if undoing := a.Position.Cursor.Undoing != nil; a.Compensates != undoing {
					t.Errorf("advance %d: got %+v", i, a)
				}
			}
		})
	}
}

// TestStepsWait: the workflow waits between attempts, as the step's `retry` defines.
func TestStepsWait(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `steps: [{name: one, tool: one, retry: {attempts: 3, interval: 5m, backoff: 2}}]`)
	var at []time.Time
	k.answer = func(path string) (pipeline.Event, error) {
		at = append(at, k.fixture.env.Now())
		return failed("x"), nil
	}
	k.want(k.walk(stepsInput()), runs.OutcomeError, "x", "one", "one~2", "one~3")
	for i, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
		if took := at[i+1].Sub(at[i]); took < pause || took > pause+time.Minute {
			t.Errorf("pause %d took %s, want %s", i, took, pause)
		}
	}
	if kinds := kindsOf(k.advances); kinds != "begun done woken done woken done" {
		t.Errorf("events of the advances: got %s", kinds)
	}
}

// TestStepsHaveDeadlines: a step's timeout bounds its activities, in addition to the run's
// deadline.
func TestStepsHaveDeadlines(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `steps: [{name: all, timeout: 10m, onError: continue, steps: [{name: one, agent: one}, {name: two, tool: two}]}, {name: three, tool: three}]`)
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "all/one" {
			return pipeline.Event{}, temporal.NewTimeoutError(0, nil)
		}
		return done(`1`), nil
	}
	k.want(k.walk(stepsInput()), runs.OutcomeSuccess, "", "all/one", "three")
	if active := k.advances[1].Position.Active; active == nil || active.Deadline.Sub(k.advances[0].Now) != 10*time.Minute {
		t.Errorf("active step: got %+v, want a deadline after 10m", active)
	}
	if f := k.advances[1].Position.Event.Failure; f == nil || f.Code != "timeout" {
		t.Errorf("failure: got %+v, want timeout", f)
	}
}

// TestCancelledStepsCompensate: a cancelled run compensates for its work in reverse order. The
// compensations are not cancelled.
func TestCancelledStepsCompensate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]string
		cancel  string // where the run is cancelled
		did     string
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
			k := setupPipeline(t, booking)
			k.answer = func(path string) (pipeline.Event, error) {
				if path == c.cancel {
					k.cancel()
				}
				return byPath(c.answers)(path)
			}
			k.wantCancelled(k.walk(stepsInput()), c.did)
			if alone := len(k.advances) == 1; alone != (c.did == "book") { // without work to compensate, the workflow makes no further advance
				t.Errorf("advances: got %d", len(k.advances))
			}
		})
	}
}

// wantCancelled fails the test unless the work before the cancel was compensated, in activities
// that ignore the cancel.
func (k *pipelineFixture) wantCancelled(result runs.Result, did string) {
	k.t.Helper()
	k.want(result, runs.OutcomeCancelled, "", strings.Fields(did)...)
	for _, m := range k.fixture.models {
		if undoes := strings.Contains(m.Place.Path, "~undo"); m.Compensates != undoes {
			k.t.Errorf("model call: got %+v", m)
		}
	}
}

// TestCancelledAdvances: after a cancelled advance the workflow finds out whether its record was
// written. The result of the cancel follows that record. If the workflow cannot find out, the run
// ends.
func TestCancelledAdvances(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancel          string // the advance
		refuse, written bool   // before or after the record is written
		did             string
	}{
		"first":   {"advance/1", true, false, ""},
		"written": {"advance/3", false, true, "book pay pay~undo book~undo"},
		"unknown": {"advance/3", true, false, "book pay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setupPipeline(t, booking)
			asked := 0
			cancel := func(in runs.AdvanceInput) error {
				if in.ID != c.cancel {
					return nil
				}
				k.cancel()
				if asked++; asked > 1 && c.written {
					return nil
				}
				return temporal.NewCanceledError()
			}
			if c.refuse {
				k.refuse = cancel
			} else {
				k.advanced = cancel
			}
			k.wantCancelled(k.walk(stepsInput()), c.did)
			if again := asked > 1; again != (name != "first") {
				t.Errorf("the advance was attempted %d times", asked)
			}
		})
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// TestStepsAskUntilTheirTimeIsOver: a step's timeout ends its interrupt.
func TestStepsAskUntilTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]bool{"ended": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setupPipeline(t, `
steps:
  - {name: a, timeout: 20m, approve: {message: "May I?", expires: 1h}, onError: {steps: [{name: b, tool: t}]}}
  - {name: c, timeout: 30m, steps: [{name: d, approve: {message: "And now?"}}]}
`)
			k.silent = true
			in := stepsInput()
			in.Hold = hold
			if result := k.walk(in); result.Outcome != runs.OutcomeError || result.Code != "timeout" {
				t.Errorf("got %+v, want the code timeout", result)
			}
			if !slices.Contains(k.did, "a~error/b") {
				t.Errorf("paths: got %q", k.did)
			}
		})
	}
}
