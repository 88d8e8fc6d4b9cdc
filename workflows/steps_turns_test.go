package workflows_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// TestStepsTakeTurns: an agent step takes turns with its tools, up to its limit. A step that needs
// more turns fails.
func TestStepsTakeTurns(t *testing.T) {
	t.Parallel()
	for turns, code := range map[int]string{3: "", stepsInput().Limits.Turns + 1: runs.CodeLimitTurns} {
		k := setupPipeline(t, `
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two}
`)
		var ids []string
		k.begun = func(w *fixture, _ any) {
			w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.checkPosition(in.Step)
				ids = append(ids, in.ID)
				a := says(k.write(lane(in.Step), in.Name))
				if k.came[a.MessageID] = done(`"done"`); in.Turn < turns {
					a.Calls = []runs.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t"}}
				}
				return a, nil
			}
		}
		result := k.walk(stepsInput())
		limit := min(turns, stepsInput().Limits.Turns)
		if len(ids) != limit || ids[limit-1] != fmt.Sprintf("one/%d/model", limit) || result.Outcome != runs.OutcomeSuccess || k.did[len(k.did)-1] != "two" {
			t.Errorf("got %+v after the turns %q", result, ids)
		}
		ev := k.advances[1].Position.Event
		if failed := ev.Kind == pipeline.EventFailed; failed != (code != "") || failed && ev.Failure.Code != code {
			t.Errorf("event after %d turns: got %+v", turns, ev)
		}
	}
}

// TestStepsUseTokens: an agent step has its own limits of tokens and cost, which include its calls.
// A step that exceeds them fails, and the run continues. The run's limits bound all other steps.
func TestStepsUseTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tokens, cost int64
		turns        int
		code         string
	}{
		"unbounded": {turns: 4}, "within": {tokens: 3 * 110, cost: 3 * 1100, turns: 4},
		"tokens": {tokens: 2*110 + 99, turns: 3, code: runs.CodeLimitTokens},
		"cost":   {cost: 2*1100 + 999, turns: 3, code: runs.CodeLimitCost},
		"calls":  {tokens: 3*110 - 1, turns: 3, code: runs.CodeLimitTokens},
	} {
		k := setupPipeline(t, `
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two}
`)
		k.limits.Tokens, k.limits.Cost = c.tokens, c.cost
		uses := func(tokens, cost int64) runs.Usage {
			return runs.Usage{Model: "m", Total: &tokens, Cost: &cost}
		}
		var turns int
		k.begun = func(w *fixture, _ any) {
			w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.checkPosition(in.Step)
				a := says(k.write(lane(in.Step), in.Name))
				a.Usage = uses(100, 1000)
				if turns++; in.Priced != (c.cost > 0) {
					t.Errorf("%s: model calls require prices: got %t, want %t", name, in.Priced, c.cost > 0)
				}
				if k.came[a.MessageID] = done(`"done"`); turns < 4 {
					a.Calls = []runs.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t"}}
				}
				return a, nil
			}
			call := w.tool
			w.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
				a, err := call(in)
				if in.Place.Path == "one" {
					a.Usage = []runs.Usage{uses(10, 100)}
				}
				return a, err
			}
		}
		if result := k.walk(stepsInput()); turns != c.turns || result.Outcome != runs.OutcomeSuccess || k.did[len(k.did)-1] != "two" {
			t.Errorf("%s: got %+v after %d turns", name, result, turns)
		}
		ev := k.advances[1].Position.Event
		if failed := ev.Kind == pipeline.EventFailed; failed != (c.code != "") || failed && ev.Failure.Code != c.code {
			t.Errorf("%s: event of the step: got %+v", name, ev)
		}
	}
}

// TestATurnEndsAsItsRunIsCancelled: a run that is cancelled during its last turn ends as cancelled,
// and makes no calls of that turn.
func TestATurnEndsAsItsRunIsCancelled(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{true, false} {
		for _, calls := range [][]string{nil, {"c"}} {
			k := setupPipeline(t, `steps: [{name: one, agent: one}, {name: two, tool: two}]`)
			k.begun = func(w *fixture, _ any) {
				w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
					k.cancel()
					k.mu.Lock()
					defer k.mu.Unlock()
					a := says(k.write(lane(in.Step), in.Name), calls...)
					k.came[a.MessageID] = done(`"done"`)
					return a, nil
				}
			}
			in := stepsInput()
			in.Steps = steps
			k.want(k.walk(in), runs.OutcomeCancelled, "")
		}
	}
}
