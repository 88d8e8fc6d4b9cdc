package workflows_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// toolStep returns a step that calls a tool.
func toolStep(name string) agents.Step { return agents.Step{Name: name, Tool: "t"} }

// TestProgramRunsSteps: a program takes steps of any kind in sequence, in one execution, whatever
// interrupts they raise and however long the history is. Each step sees the outputs of earlier
// steps.
func TestProgramRunsSteps(t *testing.T) {
	t.Parallel()
	fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		each := agents.Step{Name: "all", Map: &agents.MapStep{Items: "[1, 2, 3]", Concurrency: 1, OnError: agents.OnErrorContinue, Steps: []agents.Step{
			{Name: "ask", Approve: &agents.ApproveStep{Message: "${string(item)}?"}}, {Name: "say", Agent: &agents.AgentStep{Name: "other"}},
		}}}
		for _, s := range []agents.Step{toolStep("one"), each, {Name: "sum", Set: []agents.Op{{Path: "/sum", Value: "${steps.one + size(steps.all)}"}}}} {
			if err := a.Do(ctx, s); err != nil {
				return err
			}
		}
		var sum int
		if err := a.Value(ctx, "state.sum", &sum); err != nil {
			return err
		}
		if sum == 10 {
			return a.Do(ctx, toolStep("ten"))
		}
		return nil
	})
	fixture.executeStep = eventsByPath(map[string]string{"one": "7"})
	fixture.historyIsLong = func() bool { return true }
	fixture.wantResult(fixture.runToEnd(programInput()), runs.OutcomeSuccess, "", "one", "all/0/ask", "all/0/say", "all/1/ask", "all/1/say", "all/2/ask", "all/2/say", "ten")
	if len(fixture.executions) != 1 || len(fixture.finished) != 4 {
		t.Errorf("got %d executions and %d runs, want 1 and 4", len(fixture.executions), len(fixture.finished))
	}
	ids := map[string]bool{}
	for _, a := range fixture.advances {
		if id := a.Run.ID + " " + a.ID; ids[id] {
			t.Errorf("advance %q occurs twice, want it once", id)
		} else {
			ids[id] = true
		}
		if a.Position.Number == 0 {
			t.Errorf("advance: position number = %v, want not 0", a.Position.Number)
		}
		wantEqual(t, "advance: position input", a.Position.Input, 1)
		if !strings.HasPrefix(a.Position.Origin, "r") {
			t.Errorf("advance: position origin = %q, want prefix %q", a.Position.Origin, "r")
		}
	}
	for _, id := range []string{"r do/1/advance/1", "r do/2/all/0/do/2/advance/1", "r do/2/all/0/suspend"} {
		if !ids[id] {
			t.Errorf("advances: got %v, want %q among them", ids, id)
		}
	}
}

// TestErrorsOfProgramSteps: the errors that a program receives for failed and invalid steps.
func TestErrorsOfProgramSteps(t *testing.T) {
	t.Parallel()
	var n int
	for name, c := range map[string]struct {
		program   func(workflow.Context, *workflows.Agent) error
		isWanted  func(error) bool
		wantPaths string
	}{
		"a step that failed": {
			func(ctx workflow.Context, a *workflows.Agent) error { return a.Do(ctx, toolStep("bad")) },
			func(err error) bool { return failureCode(err) == "broken" && strings.Contains(err.Error(), "it broke") }, "bad then",
		},
		"a missing value": {
			func(ctx workflow.Context, a *workflows.Agent) error { return a.Value(ctx, "state.missing", &n) },
			func(err error) bool { return failureCode(err) == "invalid_expression" }, "then",
		},
		"a value of another type": {
			func(ctx workflow.Context, a *workflows.Agent) error { return a.Value(ctx, "'text'", &n) },
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "'text'") }, "then",
		},
		"a step that is too large": {
			func(ctx workflow.Context, a *workflows.Agent) error {
				return a.Do(ctx, agents.Step{Name: "large", Agent: &agents.AgentStep{Instructions: strings.Repeat("x", 12<<10)}})
			},
			func(err error) bool { return err != nil && strings.Contains(err.Error(), `"large"`) }, "then",
		},
		"a step that is no JSON": {
			func(ctx workflow.Context, a *workflows.Agent) error {
				return a.Do(ctx, agents.Step{Name: "odd", Tool: "t", Args: map[string]any{"c": make(chan int)}})
			},
			func(err error) bool { return err != nil && strings.Contains(err.Error(), `"odd"`) }, "then",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
				err := c.program(ctx, a)
				if !c.isWanted(err) {
					t.Errorf("error of the program's step: got %v, want that of the case", err)
				}
				return a.Do(ctx, toolStep("then"))
			})
			fixture.executeStep = eventsByPath(map[string]string{"bad": "!broken"})
			fixture.wantResult(fixture.runToEnd(programInput()), runs.OutcomeSuccess, "", strings.Fields(c.wantPaths)...)
		})
	}
}

// failureCode returns the code of a step's failure; "" = the error is none.
func failureCode(err error) string {
	var failed *workflows.StepError
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

// TestCancelledProgramMayUndoWork: a program of a cancelled run receives a cancel error and may
// undo its work. These steps are not cancelled.
func TestCancelledProgramMayUndoWork(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]map[string]string{"in a step": {"two": "?"}, "between steps": nil, "as the step reports": {"two": "?"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) (err error) {
				if err := a.Do(ctx, toolStep("one")); err != nil {
					return err
				}
				defer func() {
					ctx, cancel := workflow.NewDisconnectedContext(ctx)
					defer cancel()
					err = errors.Join(err, a.Do(ctx, toolStep("undo")))
				}()
				if err := a.Do(ctx, toolStep("two")); err != nil {
					if !temporal.IsCanceledError(err) {
						t.Errorf("error of the step: got %v, want a cancel", err)
					}
					return err
				}
				return workflow.Sleep(ctx, time.Hour)
			})
			fixture.executeStep = func(path string) (pipeline.Event, error) {
				if path == "two" && name != "as the step reports" {
					fixture.cancelRun()
				}
				return eventsByPath(answers)(path)
			}
			fixture.wantResult(fixture.runToEnd(programInput()), runs.OutcomeCancelled, "", "one", "two", "undo")
			for _, a := range fixture.advances {
				if undoes := strings.HasPrefix(a.ID, "do/3/"); undoes && !a.Compensates {
					t.Errorf("advance %s: Compensates = false, want true", a.ID)
				}
			}
		})
	}
}

// TestProgramReceivesErrAbandoned: a client may abandon the results that a program waits for.
func TestProgramReceivesErrAbandoned(t *testing.T) {
	t.Parallel()
	var abandoned error
	f := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		abandoned = a.Do(ctx, agents.Step{Name: "mine", Tool: "client"})
		return abandoned
	})
	answers := make(chan any, 1)
	f.withholdsDecisions = true
	f.onExecution = func(execution *fixture, _ any) {
		execution.env.RegisterDelayedCallback(func() {
			offered := queuedInput("r2")
			execution.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered}, answers)
		}, time.Minute)
	}
	in := programInput()
	in.OnMissingResult = runs.OpenAbandon
	f.runToEnd(in)
	got := <-answers
	wantEqual[any](t, "answer of the submission", got, runs.SubmitResult{Closing: true})
	if !errors.Is(abandoned, workflows.ErrAbandoned) {
		t.Errorf("error of the abandoned program = %v, want %v", abandoned, workflows.ErrAbandoned)
	}
	wantEqual(t, "end of the run: outcome", f.finished[0].Outcome, runs.OutcomeSuccess)
	wantEqual(t, "end of the run: number of items", len(f.finished[0].Interrupts.Items), 1)
}

// TestProgramStepsAwaitTasks: a step of a program, and a value, begins outside of the workflow task in
// which the step before ended. If that task is lost and a cancel arrives, the program may do another
// step, which must not be taken for the one that the lost task has done.
func TestProgramStepsAwaitTasks(t *testing.T) {
	t.Parallel()
	f := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		var n int
		return errors.Join(a.Do(ctx, toolStep("one")), a.Value(ctx, "state.n", &n), a.Do(ctx, toolStep("two")))
	})
	within := map[string]bool{}
	f.onExecution = func(execution *fixture, _ any) {
		execution.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
			within[in.ID] = activity.GetInfo(ctx).IsLocalActivity
			return f.advance(in)
		}, activity.RegisterOptions{Name: runs.ActivityAdvance, DisableAlreadyRegisteredCheck: true})
	}
	f.wantResult(f.runToEnd(programInput()), runs.OutcomeSuccess, "", "one", "two")
	want := map[string]bool{"do/1/advance/1": false, "do/1/advance/2": true, "value/2": false, "do/3/advance/1": false, "do/3/advance/2": true}
	if !maps.Equal(within, want) {
		t.Errorf("advances within workflow tasks = %v, want %v", within, want)
	}
}
