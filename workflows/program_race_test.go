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

func question(name string) agents.Step {
	return agents.Step{Name: name, Approve: &agents.ApproveStep{Message: "?"}}
}

// race does a step in a coroutine of its own, for as long as people have.
func race(ctx workflow.Context, a *workflows.Agent, step agents.Step) (err error) {
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

// A person's answer races a timer of the program's. Where that is first, the question is given up
// and its step closed, and the program goes on: in the same AG-UI run if it is held, else in
// another one.
func TestAnswersRaceTimers(t *testing.T) {
	t.Parallel()
	both := agents.Step{Name: "both", Parallel: &agents.ParallelStep{Steps: []agents.Step{question("left"), question("right")}}}
	for name, c := range map[string]struct {
		step   agents.Step
		silent bool
		hold   bool
		runs   int
		did    string
	}{
		"answered":               {question("quick"), false, false, 2, "quick then"},
		"out of time":            {question("quick"), true, false, 2, "quick then"},
		"out of time, held":      {question("quick"), true, true, 1, "then"},
		"branches, out of time":  {both, true, false, 2, "both/left both/right then"},
		"branches, out of, held": {both, true, true, 1, "then"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
				if err := race(ctx, a, c.step); temporal.IsCanceledError(err) != c.silent {
					return fmt.Errorf("it is told %w", err)
				}
				return a.Do(ctx, tool("then"))
			})
			k.silent = c.silent
			in := programInput()
			in.Hold = c.hold
			result := k.walk(in)
			if result.Outcome != runs.OutcomeSuccess || len(k.finishes) != c.runs {
				t.Errorf("it ends as %+v after %d runs", result, len(k.finishes))
			}
			slices.Sort(k.did)
			if got := strings.Join(k.did, " "); got != c.did {
				t.Errorf("it did %q, want %q", got, c.did)
			}
			for _, s := range []string{c.step.Name, "then"} {
				if count(k.told, "+"+s) != 1 || count(k.told, "-"+s) != 1 {
					t.Errorf("step %s is told of by %q", s, k.told)
				}
			}
		})
	}
}

func count(list []string, s string) (n int) {
	for _, other := range list {
		if other == s {
			n++
		}
	}
	return n
}

// An agent does one thing at a time. What is under way when the program ends is waited for, and
// what is to end before the next step.
func TestProgramsDoOneThingAtATime(t *testing.T) {
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
		does workflows.Program
		did  string
	}{
		"two at once": {func(ctx workflow.Context, a *workflows.Agent) error {
			one, two := concurrent(ctx, a, tool("one")), concurrent(ctx, a, tool("two"))
			if err := one.Get(ctx, nil); err != nil {
				return err
			}
			if err := two.Get(ctx, nil); !errors.Is(err, workflows.ErrAtWork) {
				return fmt.Errorf("the second is told %w", err)
			}
			three := concurrent(ctx, a, tool("three"))
			if err := a.Value(ctx, "state.n", new(int)); !errors.Is(err, workflows.ErrAtWork) {
				return fmt.Errorf("who asks meanwhile is told %w", err)
			}
			return three.Get(ctx, nil)
		}, "one three"},
		"left behind": {func(ctx workflow.Context, a *workflows.Agent) error {
			concurrent(ctx, a, tool("one"))
			return nil
		}, "one"},
		"begun behind the end": {func(ctx workflow.Context, a *workflows.Agent) error {
			workflow.Go(ctx, func(ctx workflow.Context) { _ = a.Do(ctx, tool("one")) })
			return nil
		}, ""},
		"cancelled, and not waited for": {func(ctx workflow.Context, a *workflows.Agent) error {
			asking, cancel := workflow.WithCancel(ctx)
			asked := concurrent(asking, a, question("ask"))
			_, _ = workflow.AwaitWithTimeout(ctx, time.Second/2, asked.IsReady)
			cancel()
			return a.Do(ctx, tool("then"))
		}, "ask then"},
		"on a context that has ended": {func(ctx workflow.Context, a *workflows.Agent) error {
			ended, cancel := workflow.WithCancel(ctx)
			cancel()
			if err := a.Do(ended, tool("one")); !temporal.IsCanceledError(err) {
				return fmt.Errorf("it is told %w", err)
			}
			return a.Do(ctx, tool("then"))
		}, "then"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
				err := c.does(ctx, a)
				if err != nil {
					t.Error(err)
				}
				return err
			})
			k.want(k.walk(programInput()), runs.OutcomeSuccess, "", strings.Fields(c.did)...)
			if !slices.Equal(k.did, strings.Fields(c.did)) {
				t.Errorf("it did %q", k.did)
			}
		})
	}
}
