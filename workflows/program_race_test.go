package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// approvalStep returns a step that waits for an approval.
func approvalStep(name string) agents.Step {
	return agents.Step{Name: name, Approve: &agents.ApproveStep{Message: "?"}}
}

// doWithTimeout does a step in its own coroutine. It cancels the step after a minute.
func doWithTimeout(ctx workflow.Context, a *workflows.Agent, step agents.Step) (err error) {
	asking, cancel := workflow.WithCancel(ctx)
	defer cancel()
	answered, set := workflow.NewFuture(ctx)
	workflow.Go(asking, func(ctx workflow.Context) { set.Set(nil, a.Do(ctx, step)) })
	workflow.NewSelector(ctx).
		AddFuture(answered, func(workflow.Future) {}).
		AddFuture(workflow.NewTimer(ctx, time.Minute), func(workflow.Future) { cancel() }).
		Select(ctx)
	return answered.Get(ctx, nil)
}

// TestProgramTimerCancelsInterrupt: a program waits for a decision or its own timer. If the timer
// fires first, the interrupt is cancelled, its step is closed, and the program continues: in the
// same AG-UI run if the run is held, else in another one.
func TestProgramTimerCancelsInterrupt(t *testing.T) {
	t.Parallel()
	both := agents.Step{Name: "both", Parallel: &agents.ParallelStep{Steps: []agents.Step{approvalStep("left"), approvalStep("right")}}}
	for name, c := range map[string]struct {
		step       agents.Step
		unanswered bool
		hold       bool
		wantRuns   int
		wantPaths  string
	}{
		"answered":               {approvalStep("quick"), false, false, 2, "quick then"},
		"out of time":            {approvalStep("quick"), true, false, 2, "quick then"},
		"out of time, held":      {approvalStep("quick"), true, true, 1, "then"},
		"branches, out of time":  {both, true, false, 2, "both/left both/right then"},
		"branches, out of, held": {both, true, true, 1, "then"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
				if err := doWithTimeout(ctx, a, c.step); temporal.IsCanceledError(err) != c.unanswered {
					return fmt.Errorf("error of the step: %w", err)
				}
				return a.Do(ctx, toolStep("then"))
			})
			fixture.withholdsDecisions = c.unanswered
			in := programInput()
			in.Hold = c.hold
			result := fixture.runToEnd(in)
			if result.Outcome != runs.OutcomeSuccess || len(fixture.finished) != c.wantRuns {
				t.Errorf("got %+v after %d runs, want %d runs", result, len(fixture.finished), c.wantRuns)
			}
			slices.Sort(fixture.executedPaths)
			if got := strings.Join(fixture.executedPaths, " "); got != c.wantPaths {
				t.Errorf("paths: got %q, want %q", got, c.wantPaths)
			}
			for _, s := range []string{c.step.Name, "then"} {
				if countOf(fixture.stepEvents, "+"+s) != 1 || countOf(fixture.stepEvents, "-"+s) != 1 {
					t.Errorf("events of step %s: got %q, want one start and one end", s, fixture.stepEvents)
				}
			}
		})
	}
}

// countOf returns how often a list has a text.
func countOf(list []string, s string) (n int) {
	for _, other := range list {
		if other == s {
			n++
		}
	}
	return n
}

// TestProgramRunsOneStepAtATime: an agent takes one step at a time. The workflow waits for a step
// that runs when the program ends, and for a cancelled step before the next one.
func TestProgramRunsOneStepAtATime(t *testing.T) {
	t.Parallel()
	concurrent := func(ctx workflow.Context, a *workflows.Agent, s agents.Step) workflow.Future {
		done, set := workflow.NewFuture(ctx)
		begun := false
		workflow.Go(ctx, func(ctx workflow.Context) {
			begun = true
			set.Set(nil, a.Do(ctx, s))
		})
		_ = workflow.Await(ctx, func() bool { return begun })
		return done
	}
	for name, c := range map[string]struct {
		program   workflows.Program
		wantPaths string
	}{
		"two at once": {func(ctx workflow.Context, a *workflows.Agent) error {
			one, two := concurrent(ctx, a, toolStep("one")), concurrent(ctx, a, toolStep("two"))
			if err := one.Get(ctx, nil); err != nil {
				return err
			}
			if err := two.Get(ctx, nil); !errors.Is(err, workflows.ErrStepActive) {
				return fmt.Errorf("second step: %w", err)
			}
			three := concurrent(ctx, a, toolStep("three"))
			if err := a.Value(ctx, "state.n", new(int)); !errors.Is(err, workflows.ErrStepActive) {
				return fmt.Errorf("value during a step: %w", err)
			}
			return three.Get(ctx, nil)
		}, "one three"},
		"running at the end": {func(ctx workflow.Context, a *workflows.Agent) error {
			concurrent(ctx, a, toolStep("one"))
			return nil
		}, "one"},
		"begun after the end": {func(ctx workflow.Context, a *workflows.Agent) error {
			workflow.Go(ctx, func(ctx workflow.Context) { _ = a.Do(ctx, toolStep("one")) })
			return nil
		}, ""},
		"cancelled, and not waited for": {func(ctx workflow.Context, a *workflows.Agent) error {
			asking, cancel := workflow.WithCancel(ctx)
			asked := concurrent(asking, a, approvalStep("ask"))
			_, _ = workflow.AwaitWithTimeout(ctx, time.Second/2, asked.IsReady)
			cancel()
			return a.Do(ctx, toolStep("then"))
		}, "ask then"},
		"on a context that has ended": {func(ctx workflow.Context, a *workflows.Agent) error {
			ended, cancel := workflow.WithCancel(ctx)
			cancel()
			if err := a.Do(ended, toolStep("one")); !temporal.IsCanceledError(err) {
				return fmt.Errorf("step on an ended context: %w", err)
			}
			return a.Do(ctx, toolStep("then"))
		}, "then"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
				err := c.program(ctx, a)
				if err != nil {
					t.Error(err)
				}
				return err
			})
			fixture.wantResult(fixture.runToEnd(programInput()), runs.OutcomeSuccess, "", strings.Fields(c.wantPaths)...)
			if !slices.Equal(fixture.executedPaths, strings.Fields(c.wantPaths)) {
				t.Errorf("paths: got %q, want %q", fixture.executedPaths, c.wantPaths)
			}
		})
	}
}
