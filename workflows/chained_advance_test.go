package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// chainedAdvances returns the IDs of the advances that calls made after themselves.
func (f *pipelineFixture) chainedAdvances() string {
	var ids []string
	for _, a := range f.advances {
		if a.AfterCall {
			ids = append(ids, a.ID)
		}
	}
	return strings.Join(ids, " ")
}

// TestChainedAdvances: a step's call makes the next advance in the same activity. Calls
// that wait for a decision, calls of clients or of other task queues, and compensations do not.
func TestChainedAdvances(t *testing.T) {
	t.Parallel()
	const two = `steps: [{name: one, tool: one}, {name: two, tool: two}]`
	for name, c := range map[string]struct {
		steps        string
		wantChained  string
		wantAdvances int // advances
	}{
		"tools":              {steps: two, wantChained: "advance/2 advance/3", wantAdvances: 3},
		"after an agent":     {steps: `steps: [{name: one, agent: one}, {name: two, tool: two}]`, wantChained: "advance/3", wantAdvances: 3},
		"an approval step":   {steps: `steps: [{name: one, approve: {message: x}}]`, wantAdvances: 3},
		"a tool of clients":  {steps: `steps: [{name: one, tool: client}]`, wantAdvances: 1},
		"another task queue": {steps: `steps: [{name: one, tool: far}]`, wantAdvances: 2},
		"a compensation": {
			steps:       "steps: [{name: one, tool: one, compensate: {tool: undo}}, {name: two, agent: two}, {name: three, tool: three}]",
			wantChained: "advance/2 advance/4", wantAdvances: 5,
		},
		"branches": {
			steps:       `steps: [{name: both, parallel: [{name: left, tool: one}, {name: right, tool: two}]}, {name: three, tool: three}]`,
			wantChained: "both/0/advance/2 both/1/advance/2 advance/3", wantAdvances: 7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, c.steps)
			in := stepsInput()
			fixture.executeStep = eventsByPath(map[string]string{"three": "!no"})
			fixture.runToEnd(in)
			got := strings.Fields(fixture.chainedAdvances())
			slices.Sort(got[:max(0, len(got)-1)]) // branches, in any order
			if chained := strings.Join(got, " "); chained != c.wantChained || len(fixture.advances) != c.wantAdvances {
				t.Errorf("chained advances: got %q of %d, want %q of %d", chained, len(fixture.advances), c.wantChained, c.wantAdvances)
			}
		})
	}
}

// TestPauseDuringCall: a pause during a call takes effect before the next call, however long the
// pause lasts. A call that begins in a pausing run makes no advance.
func TestPauseDuringCall(t *testing.T) {
	t.Parallel()
	for pause, executions := range map[time.Duration]int{time.Minute: 1, 20 * time.Minute: 2} {
		for _, during := range []string{"advance/1", "advance/2"} { // advance/2 is chained to the call
			f := setupPipeline(t, `steps: [{name: one, tool: one}, {name: two, tool: two}]`)
			at := map[string]time.Time{}
			f.executeStep = func(path string) (pipeline.Event, error) {
				at[path] = f.execution.env.Now()
				return doneEvent(`1`), nil
			}
			resume := func(execution *fixture) {
				execution.env.RegisterDelayedCallback(func() { execution.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1)) }, pause)
			}
			var paused time.Time
			f.failBeforeAdvance = func(in runs.AdvanceInput) error {
				if in.ID == during {
					paused = f.execution.env.Now()
					f.execution.update(runs.UpdatePause, runs.PauseRequest{}, make(chan any, 1))
					resume(f.execution)
				}
				return nil
			}
			f.onExecution = func(execution *fixture, in any) {
				if _, parked := in.(*runs.ParkedInput); parked {
					resume(execution)
				}
			}
			f.wantResult(f.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
			if at["two"].Sub(paused) < pause {
				t.Errorf("paused in %s for %s: the next call begins after %s, want at least %s", during, pause, at["two"].Sub(paused), pause)
			}
			wantEqual(t, fmt.Sprintf("paused in %s for %s: number of executions", during, pause), len(f.executions), executions)
			if want := map[string]string{"advance/1": "advance/3", "advance/2": "advance/2 advance/3"}[during]; f.chainedAdvances() != want {
				t.Errorf("paused in %s: chained advances: got %q, want %q", during, f.chainedAdvances(), want)
			}
		}
	}
}

// TestLargeAdvancesAreNotChained: an advance that does not fit into the call's payload is made by
// its own activity.
func TestLargeAdvancesAreNotChained(t *testing.T) {
	t.Parallel()
	name, alone := strings.Repeat("n", 60), 0
	for n, room := 6000, runs.MaxPayload; room > 100; n += 20 { // an advance has the ID twice
		fixture := setupPipeline(t, fmt.Sprintf("steps: [{name: a%[1]s, steps: [{name: b%[1]s, steps: [{name: c%[1]s, steps: [{name: d%[1]s, tool: t}]}]}]}]", name))
		in := stepsInput()
		in.Run.ID = strings.Repeat("r", n)
		result := fixture.runToEnd(in)
		wantEqual(t, fmt.Sprintf("with an ID of %d bytes: outcome", n), result.Outcome, runs.OutcomeSuccess)
		last := fixture.advances[1]
		payload, err := runs.DataConverter().ToPayload(last)
		if err != nil {
			t.Fatal(err)
		}
		if room = runs.MaxPayload - len(payload.GetData()); !last.AfterCall {
			alone++
		}
	}
	if alone == 0 {
		t.Error("advances that were too large for their call: got none, want some")
	}
}

// TestLostAnswerOfChainedCall: the advance that a call has made counts, even if the workflow
// receives the result of neither.
func TestLostAnswerOfChainedCall(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	for name, c := range map[string]struct {
		events      map[string]string
		cancelAt    string // the run is cancelled as the call at this path ends
		wantOutcome runs.Outcome
		wantCode    string
		wantPaths   string
	}{
		"none fails":            {nil, "", runs.OutcomeSuccess, "", "book pay ship"},
		"one fails":             {map[string]string{"ship": "!lost"}, "", runs.OutcomeError, "lost", "book pay ship pay~undo book~undo"},
		"cancelled at first":    {nil, "book", runs.OutcomeCancelled, "", "book book~undo"},
		"cancelled later":       {nil, "pay", runs.OutcomeCancelled, "", "book pay pay~undo book~undo"},
		"cancelled at the end":  {nil, "ship", runs.OutcomeSuccess, "", "book pay ship"},
		"cancelled as it fails": {map[string]string{"ship": "!lost"}, "ship", runs.OutcomeCancelled, "", "book pay ship pay~undo book~undo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, steps)
			fixture.executeStep = eventsByPath(c.events)
			fixture.failChainedCall = func(in runs.ToolCall) error {
				if in.PipelineStep.Path == c.cancelAt {
					fixture.cancelRun()
				}
				return temporal.NewNonRetryableApplicationError("the worker died", "gone", nil)
			}
			fixture.wantResult(fixture.runToEnd(stepsInput()), c.wantOutcome, c.wantCode, strings.Fields(c.wantPaths)...)
		})
	}
}
