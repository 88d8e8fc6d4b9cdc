package workflows_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/workflows"
)

// An agent that is a step takes turns with its tools, as many as it may; one that would take more has failed.
func TestStepsTakeTurns(t *testing.T) {
	t.Parallel()
	for turns, code := range map[int]string{3: "", stepsInput().Limits.Turns + 1: workflows.CodeLimitTurns} {
		k := newWalking(t, `
steps:
  - {name: one, agent: one, onError: continue}
  - {name: two, tool: two}
`)
		var ids []string
		k.begun = func(w *world, _ any) {
			w.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.behind(in.Step)
				ids = append(ids, in.ID)
				a := says(k.write(lane(in.Step), in.Name))
				if k.came[a.MessageID] = done(`"done"`); in.Turn < turns {
					a.Calls = []workflows.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t"}}
				}
				return a, nil
			}
		}
		result := k.walk(stepsInput())
		most := min(turns, stepsInput().Limits.Turns)
		if len(ids) != most || ids[most-1] != fmt.Sprintf("one/%d/model", most) || result.Outcome != workflows.OutcomeSuccess || k.did[len(k.did)-1] != "two" {
			t.Errorf("%+v after the turns %q", result, ids)
		}
		ev := k.advances[1].Walk.Event
		if failed := ev.Kind == pipeline.EventFailed; failed != (code != "") || failed && ev.Failure.Code != code {
			t.Errorf("of %d turns comes %+v", turns, ev)
		}
	}
}

// What a run has said when it is cancelled does not make it one that ended well, and the calls that it wants are not made.
func TestATurnEndsAsItsRunIsCancelled(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{true, false} {
		for _, calls := range [][]string{nil, {"c"}} {
			k := newWalking(t, `steps: [{name: one, agent: one}, {name: two, tool: two}]`)
			k.begun = func(w *world, _ any) {
				w.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
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
			k.want(k.walk(in), workflows.OutcomeCancelled, "")
		}
	}
}
