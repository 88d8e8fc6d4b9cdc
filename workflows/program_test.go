package workflows_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// TestProgramWaitsForDecision: a program may wait for a decision in the middle of its code. Its run
// ends with the interrupt. The code continues in the run with the decision, in the same execution.
func TestProgramWaitsForDecision(t *testing.T) {
	t.Parallel()
	var sums []int
	program := func(ctx workflow.Context, a *workflows.Agent) error {
		if err := a.Do(ctx, agents.Step{Name: "ask", Approve: &agents.ApproveStep{Message: "Go on?"}}); err != nil {
			return err
		}
		if err := workflow.Sleep(ctx, time.Hour/2); err != nil {
			return err
		}
		var sum int
		if err := a.Value(ctx, "steps.ask.n", &sum); err != nil {
			return err
		}
		sums = append(sums, sum)
		return nil
	}
	fixture := setupPrograms(t, workflows.Programs{"p": program})
	var steps []string
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		steps = append(steps, in.Run.ID+" "+in.ID)
		next := runs.AdvanceResult{Seq: uint64(10 * len(steps)), TreePosition: in.Position.TreePosition}
		switch {
		case in.Expression != "":
			next.Value = json.RawMessage("7")
		case in.Resumes, in.Position.Event.Kind == pipeline.EventDone:
		default:
			next.Active = &runs.ActiveStep{
				AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: input.Limits}, CallID: "c",
				PipelineStep: runs.StepRef{Path: "ask", Name: "ask", Inline: true},
			}
			answer := modelAnswer(next.Seq, "c")
			answer.Calls[0].Approval, answer.InterruptCount = &runs.Approval{ArgsDigest: "d"}, 1
			next.Answer = &answer
		}
		return next, nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: 1000, Opened: 999}, nil
	}
	decided := fixture.decideOneByOne(runs.Decision{CallID: "c", Kind: runs.DecisionApprove, Digest: "x", ArgsDigest: "d"})
	in := input
	in.Program = "p"
	result, last := fixture.run(in)
	results := decided()
	mustEqual(t, "number of results of the decision", len(results), 1)
	wantEqual(t, "error of the decision", results[0].Error, "")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "values", sums, []int{7})
	mustEqual(t, "number of ends of runs", len(fixture.finished), 2)
	wantEqual(t, "outcome of the first run", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	if last.Run.ID == in.Run.ID {
		t.Errorf("ID of the last run = %v, want another than the first run's", last.Run.ID)
	}
	wantEqual(t, "run that the last run continues", last.Continues, in.Run.ID)
	next := last.Run.ID + " "
	want := []string{"r do/1/advance/1", next + "reopen", next + "do/1/advance/1", next + "value/2"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps: got %q, want %q", steps, want)
	}
}

// TestProgramReadsOutputs: a program reads the outputs of its steps with their Go types.
func TestProgramReadsOutputs(t *testing.T) {
	t.Parallel()
	type order struct {
		Number int    `json:"number"`
		From   string `json:"from"`
	}
	var read []any
	fixture := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		placed := agents.Call[order]("placed", "place", nil)
		o, err := workflows.Do(ctx, a, placed)
		if err != nil {
			return err
		}
		number, err := workflows.Value(ctx, a, agents.Field(placed, &placed.Out.Number))
		if err != nil {
			return err
		}
		read = append(read, o, number)
		_, err = workflows.Do(ctx, a, agents.Call[string]("refused", "refuse", nil))
		return err
	}})
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		next := runs.AdvanceResult{Seq: 10}
		switch in.Expression {
		case "steps.placed":
			next.Value = json.RawMessage(`{"number":7,"from":"x"}`)
		case "steps.placed.number":
			next.Value = json.RawMessage("7")
		case "":
			if strings.Contains(string(in.Tree), "refuse") {
				next.Failed = &pipeline.Failure{Code: "tool_failed"}
			}
		}
		return next, nil
	}
	in := input
	in.Program = "p"
	result, _ := fixture.run(in)
	wantEqual(t, "code", result.Code, "tool_failed")
	wantEqual(t, "values", read, []any{order{7, "x"}, 7})
}

// TestFailedPrograms: a program that its worker does not have, and a program that fails, end the
// run with a code.
func TestFailedPrograms(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"none": runs.CodeProgramUnknown, "fails": runs.CodeProgram, "step": "rejected", "again": runs.CodeProgram,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPrograms(t, workflows.Programs{
				"fails": func(workflow.Context, *workflows.Agent) error { return context.DeadlineExceeded },
				"again": func(ctx workflow.Context, _ *workflows.Agent) error {
					return workflow.NewContinueAsNewError(ctx, "again")
				},
				"step": func(ctx workflow.Context, a *workflows.Agent) error {
					return a.Do(ctx, agents.Step{Name: "ask", Approve: &agents.ApproveStep{}})
				},
			})
			fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
				return runs.AdvanceResult{Seq: 10, Failed: &pipeline.Failure{Code: "rejected"}}, nil
			}
			in := input
			in.Program = name
			if result, _ := fixture.run(in); result.Outcome != runs.OutcomeError || result.Code != code {
				t.Errorf("got %+v, want the code %s", result, code)
			}
			if text := fixture.finished[0].Message; strings.Contains(text, "continue as new") != (name == "again") {
				t.Errorf("message: got %q, want one about continue-as-new: %t", text, name == "again")
			}
		})
	}
}

// setupPrograms returns a fixture with registered programs.
func setupPrograms(t *testing.T, programs workflows.Programs) *fixture {
	fixture := setup(t)
	fixture.env.RegisterWorkflowWithOptions(programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) { return fixture.advance(in) },
		activity.RegisterOptions{Name: runs.ActivityAdvance})
	return fixture
}
