package activities_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// registerProgram adds a program to the worker.
func (f *fixture) registerProgram(program workflows.Program) {
	programs := workflows.Programs{"p": program}
	f.env.RegisterWorkflowWithOptions(programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
	f.env.RegisterWorkflowWithOptions(programs.AgentChild, workflow.RegisterOptions{Name: runs.TypeChild, DisableAlreadyRegisteredCheck: true})
}

// TestProgramStepsAreValidated: an invalid step of a program is refused before any part of it
// runs, and the program may continue.
func TestProgramStepsAreValidated(t *testing.T) {
	t.Parallel()
	j := &callJournal{}
	fixture := setup(t, echoModel, j.tool())
	fixture.agent = &agents.Definition{Name: "a", Workflow: "p", Tools: []string{"note"}, Limits: agents.DefaultLimits()}
	noted := func(name, note string) agents.Stepper {
		return agents.Call[string](name, "note", agents.Args{"note": note})
	}
	fixture.registerProgram(func(ctx workflow.Context, a *workflows.Agent) error {
		for _, wrong := range []struct {
			step        agents.Stepper
			wantMessage string
		}{
			{noted("", "x"), "step needs a name"},
			{agents.Sequence("both", agents.Steps{noted("one", "x"), agents.Call[string]("two", "notes", nil)}), `step.steps[1].tool "notes" is not one of`},
			{agents.Step{Name: "none"}, "step must have one of"},
		} {
			var failed *workflows.StepError
			if err := a.Do(ctx, wrong.step); !errors.As(err, &failed) || failed.Code != "invalid_step" || !strings.Contains(failed.Message, wrong.wantMessage) {
				return fmt.Errorf("error of an invalid step: %w", err)
			}
		}
		if err := a.Do(ctx, noted("first", "1")); err != nil {
			return err
		}
		return a.Do(ctx, noted("second", "${steps.first} 2"))
	})
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	j.wantEntries(t, "1", "1 2")
	fixture.wantShownConversation(events)
}

// TestProgramsAsSubagentsLeaveNoOutputs: the outputs of a program that is a subagent are
// removed from the state when its call ends, successful or not.
func TestProgramsAsSubagentsLeaveNoOutputs(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"done": nil, "failed": errors.New("x")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				switch last := req.Messages[len(req.Messages)-1]; {
				case req.Model == "lead" && last.Role == llm.RoleUser:
					return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
				case req.Model == "lead":
					return textAnswer("done")
				}
				return echoModel(n, req)
			}, []*agents.Definition{{Name: "helper", Model: "test/helper", Workflow: "p", Limits: agents.DefaultLimits()}})
			fixture.registerProgram(func(ctx workflow.Context, a *workflows.Agent) error {
				one, err := workflows.Do(ctx, a, agents.Ask[string]("one", agents.AgentStep{Instructions: "x"}, "one of ${input.text}"))
				if err != nil || one != "re one of work" {
					t.Errorf("output of step one: got %q, %v, want %q", one, err, "re one of work")
				}
				return fails
			})
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			fixture.wantState(`{"perdure.steps":{}}`)
			fixture.wantShownConversation(events)
		})
	}
}
