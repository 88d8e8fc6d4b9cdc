package workflows_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// setupDelegation returns an agent that hands work to a subagent with steps, and ends after the
// result.
func setupDelegation(t *testing.T, steps string) (fixture *pipelineFixture, answers *[]runs.SubagentAnswer) {
	t.Helper()
	fixture = setupPipeline(t, steps)
	return fixture, fixture.delegateTo(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Steps: true})
}

// delegateTo makes a model hand work to the subagent.
func (f *pipelineFixture) delegateTo(helper runs.AgentRef) (answers *[]runs.SubagentAnswer) {
	answers = new([]runs.SubagentAnswer)
	f.onExecution = func(execution *fixture, _ any) {
		execution.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			if in.Child != nil {
				return f.callModel(in)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.checkPosition(in.Step)
			a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: f.write(laneOf(in.Step), in.Name), MessageID: "top"}
			if in.Turn == 1 && in.Run.ID == "r" {
				a.Calls = []runs.Call{{ID: "work", Tool: "helper", Subagent: 1}}
				a.Subagents = []runs.AgentRef{helper}
			}
			return a, nil
		}
		execution.env.RegisterActivityWithOptions(func(_ context.Context, in runs.SubagentAnswer) (runs.ToolAnswer, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			*answers = append(*answers, in)
			outer := in.Step
			outer.Child = nil
			a := runs.ToolAnswer{Outcome: in.Outcome, Opened: f.write(laneOf(outer), "tools"), Seq: f.write(laneOf(in.Step), ""), Usage: in.Usage}
			if a.Outcome == runs.OutcomeInterrupt {
				a.Outcome = runs.OutcomeSuccess
			}
			return a, nil
		}, activity.RegisterOptions{Name: runs.ActivityAnswerSubagent})
	}
	return answers
}

// TestProgramAsSubagent: a program can be a subagent. Its expressions see the task as the input.
// It reports its own steps, so that its answer has no step to close.
func TestProgramAsSubagent(t *testing.T) {
	t.Parallel()
	fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		if err := a.Do(ctx, toolStep("one")); err != nil {
			return err
		}
		var n int
		if err := a.Value(ctx, "steps.one", &n); err != nil {
			return err
		}
		return a.Do(ctx, agents.Step{Name: "two", Agent: &agents.AgentStep{Name: "other"}})
	})
	fixture.executeStep = eventsByPath(map[string]string{"one": "7"})
	answers := fixture.delegateTo(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	fixture.wantResult(fixture.runToEnd(in), runs.OutcomeSuccess, "", "one", "two")
	for _, a := range fixture.advances {
		if a.Position.Child == nil {
			t.Fatal("advance: child of the position = nil, want a value")
		}
		wantEqual(t, "advance: call of the subagent", a.Position.Child.CallID, "work")
		wantEqual(t, "advance: home of the tree position", a.Position.TreePosition.Home, "agent:work")
	}
	mustEqual(t, "number of answers of the call", len(*answers), 1)
	mustEqual(t, "answer 0: is pipeline", (*answers)[0].IsPipeline, true)
	wantEqual(t, "answer 0: outcome", (*answers)[0].Outcome, runs.OutcomeSuccess)
}

// TestInterruptOfProgramSubagent: a program that is a subagent raises interrupts, also in
// branches. The run stays open until they are decided, because a program cannot end with an
// interrupt and begin again.
func TestInterruptOfProgramSubagent(t *testing.T) {
	t.Parallel()
	undo := toolStep("")
	book := agents.Step{Name: "book", Tool: "t", Compensate: &undo}
	both := agents.Step{Name: "both", Parallel: &agents.ParallelStep{OnError: agents.OnErrorContinue, Steps: []agents.Step{approvalStep("left"), toolStep("right")}}}
	fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		if err := a.Do(ctx, agents.Step{Name: "order", Steps: []agents.Step{book, approvalStep("ask"), toolStep("ship")}}); failureCode(err) != "rejected" {
			t.Errorf("error of the step: got %v, want the code rejected", err)
		}
		return a.Do(ctx, both)
	})
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "order/ask" {
			return failedEvent("no"), nil
		}
		return doneEvent(`1`), nil
	}
	answers := fixture.delegateTo(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	fixture.wantResultInAnyOrder(fixture.runToEnd(in), runs.OutcomeSuccess, "", "order/book order/ask order/book~undo both/left both/right")
	mustEqual(t, "number of ends", len(fixture.finished), 1)
	mustEqual(t, "number of answers of the call", len(*answers), 1)
	wantEqual(t, "answer 0: outcome", (*answers)[0].Outcome, runs.OutcomeSuccess)
}

// TestCancelOfProgramSubagent: steps that a program takes to clean up after a cancel are
// not cancelled.
func TestCancelOfProgramSubagent(t *testing.T) {
	t.Parallel()
	fixture := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) (err error) {
		defer func() {
			ctx, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			err = errors.Join(err, a.Do(ctx, toolStep("undo")))
		}()
		return a.Do(ctx, toolStep("one"))
	})
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "one" {
			fixture.cancelRun()
			return cancelledEvent, nil
		}
		return doneEvent(`1`), nil
	}
	answers := fixture.delegateTo(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	fixture.wantResult(fixture.runToEnd(in), runs.OutcomeCancelled, "", "one", "undo")
	for _, a := range fixture.advances {
		if undoes := strings.HasPrefix(a.ID, "1/tools/0/do/2/"); undoes && !a.Compensates {
			t.Errorf("advance %s: Compensates = false, want true", a.ID)
		}
	}
	mustEqual(t, "number of answers of the call", len(*answers), 1)
	wantEqual(t, "answer 0: outcome", (*answers)[0].Outcome, runs.OutcomeCancelled)
}

// TestPipelineAsSubagent: an agent with steps can be a subagent. It starts with the call, raises
// interrupts of the run, and continues after their decisions.
func TestPipelineAsSubagent(t *testing.T) {
	t.Parallel()
	fixture, answers := setupDelegation(t, `
steps:
  - {name: one, agent: one}
  - {name: ask, approve: {message: 'May I?'}}
  - {name: both, parallel: [{name: left, tool: two}, {name: right, agent: three}]}
`)
	fixture.executeStep = eventsByPath(map[string]string{"one": `"from one"`})
	in := input
	in.Limits = stepsInput().Limits
	fixture.wantResultInAnyOrder(fixture.runToEnd(in), runs.OutcomeSuccess, "", "one ask both/left both/right")
	first := fixture.advances[0]
	if first.Announces == nil {
		t.Fatal("first advance: Announces = nil, want a value")
	}
	wantEqual(t, "first advance: announces call ID", first.Announces.CallID, "work")
	wantEqual(t, "first advance: beginning", first.Beginning, runs.Beginning{})
	if first.Position.Child == nil {
		t.Fatal("first advance: child of the position = nil, want a value")
	}
	wantEqual(t, "first advance: call of the subagent", first.Position.Child.CallID, "work")
	for _, a := range fixture.advances {
		wantEqual(t, "advance: agent", a.Agent, "helper")
		wantEqual(t, "advance: revision", a.Revision, "hv")
		if !strings.HasPrefix(a.ID, "1/tools/0/") && !strings.HasPrefix(a.ID, "0/tools/0/") {
			t.Errorf("advance: ID = %q, want a step of the call in turn 0 or 1", a.ID)
		}
		wantEqual(t, "advance: position origin", a.Position.Origin, "r")
		wantEqual(t, "advance: home of the tree position", a.Position.TreePosition.Home, "agent:work")
		begins := a.Announces != nil
		wantEqual(t, a.ID+": the advance announces the subagent", begins, a.Child.BranchPath == "" && (a.ID == first.ID || a.Resumes))
	}
	kinds := advanceKinds(fixture.advances)
	if !strings.HasPrefix(kinds, "begun done suspends reopens done ") {
		t.Errorf("kinds of the advances = %q, want prefix %q", kinds, "begun done suspends reopens done ")
	}
	mustEqual(t, "number of answers of the call", len(*answers), 2)
	mustEqual(t, "answer 0: interrupts", (*answers)[0].Interrupts, []string{"call of ask"})
	mustEqual(t, "answer 1: is pipeline", (*answers)[1].IsPipeline, true)
	wantEqual(t, "answer 1: outcome", (*answers)[1].Outcome, runs.OutcomeSuccess)
	if (*answers)[1].MessageID == "" {
		t.Error("message of the answer is empty, want a value")
	}
	wantEqual(t, "output of the message of the answer", string(fixture.eventOf[(*answers)[1].MessageID].Output), `"from one"`)
}

// TestCancelOfPipelineSubagent: when the run is cancelled, the subagent's work is compensated and
// its call ends.
func TestCancelOfPipelineSubagent(t *testing.T) {
	t.Parallel()
	fixture, answers := setupDelegation(t, booking)
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "ship" {
			fixture.cancelRun()
			return cancelledEvent, nil
		}
		return doneEvent(`1`), nil
	}
	in := input
	in.Limits = stepsInput().Limits
	fixture.wantResult(fixture.runToEnd(in), runs.OutcomeCancelled, "", "book", "pay", "ship", "pay~undo", "book~undo")
	mustEqual(t, "number of answers of the call", len(*answers), 1)
	wantEqual(t, "answer 0: outcome", (*answers)[0].Outcome, runs.OutcomeCancelled)
}
