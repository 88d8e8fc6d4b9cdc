package workflows_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// TestTurnsOfAgentStep: an agent step takes turns with its tools, up to its limit. A step that
// needs more turns fails.
func TestTurnsOfAgentStep(t *testing.T) {
	t.Parallel()
	for turns, code := range map[int]string{3: "", stepsInput().Limits.Turns + 1: runs.CodeLimitTurns} {
		f := setupPipeline(t, `
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two}
`)
		var ids []string
		f.onExecution = func(execution *fixture, _ any) {
			execution.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.checkPosition(in.Step)
				ids = append(ids, in.ID)
				a := modelAnswer(f.write(laneOf(in.Step), in.Name))
				if f.eventOf[a.MessageID] = doneEvent(`"done"`); in.Turn < turns {
					a.Calls = []runs.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t"}}
				}
				return a, nil
			}
		}
		result := f.runToEnd(stepsInput())
		limit := min(turns, stepsInput().Limits.Turns)
		mustEqual(t, "number of turns", len(ids), limit)
		wantEqual(t, "last turn", ids[limit-1], fmt.Sprintf("one/%d/model", limit))
		wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
		wantEqual(t, "last path", f.executedPaths[len(f.executedPaths)-1], "two")
		ev := f.advances[1].Position.Event
		failed := ev.Kind == pipeline.EventFailed
		wantEqual(t, fmt.Sprintf("the step fails after %d turns", turns), failed, code != "")
		if failed && ev.Failure.Code != code {
			t.Errorf("failure after %d turns: code = %q, want %q", turns, ev.Failure.Code, code)
		}
	}
}

// TestTokensOfAgentStep: an agent step has its own limits of tokens and cost, which include its
// calls. A step that exceeds them fails, and the run continues. The run's limits bound all other
// steps.
func TestTokensOfAgentStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tokens, cost int64
		wantTurns    int
		wantCode     string
	}{
		"unbounded": {wantTurns: 4}, "within": {tokens: 3 * 110, cost: 3 * 1100, wantTurns: 4},
		"tokens": {tokens: 2*110 + 99, wantTurns: 3, wantCode: runs.CodeLimitTokens},
		"cost":   {cost: 2*1100 + 999, wantTurns: 3, wantCode: runs.CodeLimitCost},
		"calls":  {tokens: 3*110 - 1, wantTurns: 3, wantCode: runs.CodeLimitTokens},
	} {
		f := setupPipeline(t, `
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two}
`)
		f.limits.Tokens, f.limits.Cost = c.tokens, c.cost
		uses := func(tokens, cost int64) runs.Usage {
			return runs.Usage{Model: "m", Total: &tokens, Cost: &cost}
		}
		var turns int
		f.onExecution = func(execution *fixture, _ any) {
			execution.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.checkPosition(in.Step)
				a := modelAnswer(f.write(laneOf(in.Step), in.Name))
				a.Usage = uses(100, 1000)
				if turns++; in.Priced != (c.cost > 0) {
					t.Errorf("%s: model calls require prices: got %t, want %t", name, in.Priced, c.cost > 0)
				}
				if f.eventOf[a.MessageID] = doneEvent(`"done"`); turns < 4 {
					a.Calls = []runs.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t"}}
				}
				return a, nil
			}
			call := execution.tool
			execution.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
				a, err := call(in)
				if in.PipelineStep.Path == "one" {
					a.Usage = []runs.Usage{uses(10, 100)}
				}
				return a, err
			}
		}
		result := f.runToEnd(stepsInput())
		mustEqual(t, name+": turns", turns, c.wantTurns)
		wantEqual(t, name+": outcome", result.Outcome, runs.OutcomeSuccess)
		wantEqual(t, name+": last path", f.executedPaths[len(f.executedPaths)-1], "two")
		ev := f.advances[1].Position.Event
		failed := ev.Kind == pipeline.EventFailed
		wantEqual(t, name+": the step fails", failed, c.wantCode != "")
		if failed && ev.Failure.Code != c.wantCode {
			t.Errorf("%s: failure of the step: code = %q, want %q", name, ev.Failure.Code, c.wantCode)
		}
	}
}

// TestCancelDuringLastTurn: a run that is cancelled during its last turn ends as cancelled,
// and makes no calls of that turn.
func TestCancelDuringLastTurn(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{true, false} {
		for _, calls := range [][]string{nil, {"c"}} {
			f := setupPipeline(t, `steps: [{name: one, agent: one}, {name: two, tool: two}]`)
			f.onExecution = func(execution *fixture, _ any) {
				execution.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
					f.cancelRun()
					f.mu.Lock()
					defer f.mu.Unlock()
					a := modelAnswer(f.write(laneOf(in.Step), in.Name), calls...)
					f.eventOf[a.MessageID] = doneEvent(`"done"`)
					return a, nil
				}
			}
			in := stepsInput()
			in.Steps = steps
			f.wantResult(f.runToEnd(in), runs.OutcomeCancelled, "")
		}
	}
}
