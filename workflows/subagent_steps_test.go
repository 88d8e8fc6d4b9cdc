package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// delegating returns an agent that hands work to a subagent with steps, and ends after the result.
func delegating(t *testing.T, steps string) (k *pipelineFixture, answers *[]runs.SubagentAnswer) {
	t.Helper()
	k = setupPipeline(t, steps)
	return k, k.worksFor(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Steps: true})
}

// worksFor makes a model hand work to the subagent.
func (k *pipelineFixture) worksFor(helper runs.AgentRef) (answers *[]runs.SubagentAnswer) {
	answers = new([]runs.SubagentAnswer)
	k.begun = func(w *fixture, _ any) {
		w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			if in.Child != nil {
				return k.speak(in)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.checkPosition(in.Step)
			a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: k.write(lane(in.Step), in.Name), MessageID: "top"}
			if in.Turn == 1 && in.Run.ID == "r" {
				a.Calls = []runs.Call{{ID: "work", Tool: "helper", Subagent: 1}}
				a.Subagents = []runs.AgentRef{helper}
			}
			return a, nil
		}
		w.env.RegisterActivityWithOptions(func(_ context.Context, in runs.SubagentAnswer) (runs.ToolAnswer, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			*answers = append(*answers, in)
			outer := in.Step
			outer.Child = nil
			a := runs.ToolAnswer{Outcome: in.Outcome, Opened: k.write(lane(outer), "tools"), Seq: k.write(lane(in.Step), ""), Usage: in.Usage}
			if a.Outcome == runs.OutcomeInterrupt {
				a.Outcome = runs.OutcomeSuccess
			}
			return a, nil
		}, activity.RegisterOptions{Name: runs.ActivityAnswerCall})
	}
	return answers
}

// TestASubagentIsAProgram: a program can be a subagent. Its expressions see the task as the input.
// It reports its own steps, so that its answer has no step to close.
func TestASubagentIsAProgram(t *testing.T) {
	t.Parallel()
	k := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		if err := a.Do(ctx, tool("one")); err != nil {
			return err
		}
		var n int
		if err := a.Value(ctx, "steps.one", &n); err != nil {
			return err
		}
		return a.Do(ctx, agents.Step{Name: "two", Agent: &agents.AgentStep{Name: "other"}})
	})
	k.answer = byPath(map[string]string{"one": "7"})
	answers := k.worksFor(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	k.want(k.walk(in), runs.OutcomeSuccess, "", "one", "two")
	for _, a := range k.advances {
		if a.Position.Child == nil || a.Position.Child.CallID != "work" || a.Position.Cursor.Home != "agent:work" {
			t.Errorf("advance: got %+v", a)
		}
	}
	if len(*answers) != 1 || !(*answers)[0].IsPipeline || (*answers)[0].Outcome != runs.OutcomeSuccess {
		t.Errorf("answers of the call: got %+v", *answers)
	}
}

// TestASubagentThatIsAProgramAsks: a program that is a subagent raises interrupts, also in
// branches. The run stays open until they are decided, because a program cannot end with an
// interrupt and begin again.
func TestASubagentThatIsAProgramAsks(t *testing.T) {
	t.Parallel()
	undo := tool("")
	book := agents.Step{Name: "book", Tool: "t", Compensate: &undo}
	both := agents.Step{Name: "both", Parallel: &agents.ParallelStep{OnError: agents.OnErrorContinue, Steps: []agents.Step{question("left"), tool("right")}}}
	k := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) error {
		if err := a.Do(ctx, agents.Step{Name: "order", Steps: []agents.Step{book, question("ask"), tool("ship")}}); stepCode(err) != "rejected" {
			t.Errorf("error of the step: got %v, want the code rejected", err)
		}
		return a.Do(ctx, both)
	})
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "order/ask" {
			return failed("no"), nil
		}
		return done(`1`), nil
	}
	answers := k.worksFor(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	k.wantSet(k.walk(in), runs.OutcomeSuccess, "", "order/book order/ask order/book~undo both/left both/right")
	if len(k.finishes) != 1 || len(*answers) != 1 || (*answers)[0].Outcome != runs.OutcomeSuccess {
		t.Errorf("answers of the call: got %+v in %d runs", *answers, len(k.finishes))
	}
}

// TestASubagentThatIsAProgramIsCancelled: steps that a program takes to clean up after a cancel are
// not cancelled.
func TestASubagentThatIsAProgramIsCancelled(t *testing.T) {
	t.Parallel()
	k := setupProgram(t, func(ctx workflow.Context, a *workflows.Agent) (err error) {
		defer func() {
			ctx, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			err = errors.Join(err, a.Do(ctx, tool("undo")))
		}()
		return a.Do(ctx, tool("one"))
	})
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "one" {
			k.cancel()
			return stopped, nil
		}
		return done(`1`), nil
	}
	answers := k.worksFor(runs.AgentRef{Agent: "helper", Revision: "hv", Limits: stepsInput().Limits, Program: "p"})
	in := input
	in.Limits = stepsInput().Limits
	k.want(k.walk(in), runs.OutcomeCancelled, "", "one", "undo")
	for _, a := range k.advances {
		if undoes := strings.HasPrefix(a.ID, "1/tools/0/do/2/"); undoes && !a.Compensates {
			t.Errorf("advance: got %+v", a)
		}
	}
	if len(*answers) != 1 || (*answers)[0].Outcome != runs.OutcomeCancelled {
		t.Errorf("answers of the call: got %+v", *answers)
	}
}

// TestASubagentWalks: an agent with steps can be a subagent. It starts with the call, raises
// interrupts of the run, and continues after their decisions.
func TestASubagentWalks(t *testing.T) {
	t.Parallel()
	k, answers := delegating(t, `
steps:
  - {name: one, agent: one}
  - {name: ask, approve: {message: 'May I?'}}
  - {name: both, parallel: [{name: left, tool: two}, {name: right, agent: three}]}
`)
	k.answer = byPath(map[string]string{"one": `"from one"`})
	in := input
	in.Limits = stepsInput().Limits
	k.wantSet(k.walk(in), runs.OutcomeSuccess, "", "one ask both/left both/right")
	first := k.advances[0]
	if first.Announces == nil || first.Announces.CallID != "work" || first.Beginning != (runs.Beginning{}) || first.Position.Child == nil || first.Position.Child.CallID != "work" {
		t.Errorf("first advance: got %+v", first)
	}
	for _, a := range k.advances {
		if a.Agent != "helper" || a.Revision != "hv" || !strings.HasPrefix(a.ID, "1/tools/0/") && !strings.HasPrefix(a.ID, "0/tools/0/") || a.Position.Origin != "r" || a.Position.Cursor.Home != "agent:work" {
			t.Errorf("advance: got %+v", a)
		}
		if begins := a.Announces != nil; begins != (a.Child.BranchPath == "" && (a.ID == first.ID || a.Resumes)) {
			t.Errorf("announcement in the advance: got %+v", a)
		}
	}
	if kinds := kindsOf(k.advances); !strings.HasPrefix(kinds, "begun done suspends reopens done ") {
		t.Errorf("kinds of the advances: got %s", kinds)
	}
	if len(*answers) != 2 || !slices.Equal((*answers)[0].Interrupts, []string{"call of ask"}) || !(*answers)[1].IsPipeline || (*answers)[1].Outcome != runs.OutcomeSuccess {
		t.Errorf("answers of the call: got %+v", *answers)
	}
	if text := (*answers)[1].MessageID; text == "" || string(k.came[text].Output) != `"from one"` {
		t.Errorf("message of the answer: got %q", text)
	}
}

// TestASubagentIsCancelled: when the run is cancelled, the subagent's work is compensated and its
// call ends.
func TestASubagentIsCancelled(t *testing.T) {
	t.Parallel()
	k, answers := delegating(t, booking)
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "ship" {
			k.cancel()
			return stopped, nil
		}
		return done(`1`), nil
	}
	in := input
	in.Limits = stepsInput().Limits
	k.want(k.walk(in), runs.OutcomeCancelled, "", "book", "pay", "ship", "pay~undo", "book~undo")
	if len(*answers) != 1 || (*answers)[0].Outcome != runs.OutcomeCancelled {
		t.Errorf("answers of the call: got %+v", *answers)
	}
}
