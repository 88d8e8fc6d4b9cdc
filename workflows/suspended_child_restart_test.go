package workflows_test

import (
	"fmt"
	"sync"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// TestAllSuspendedSubagentsRestart: every suspended subagent restarts, also in a cancelled run and
// when there are more of them than lanes. Only the subagent knows what it has to undo.
func TestAllSuspendedSubagentsRestart(t *testing.T) {
	t.Parallel()
	const subagents = runs.MaxLanes + 2
	for name, cancelled := range map[string]bool{"a run that continues": false, "a cancelled run": true} {
		t.Run(name, func(t *testing.T) {
			fixture := setup(t)
			all := &runs.Interrupts{}
			for i := range subagents {
				id := fmt.Sprintf("c%d", i)
				existing := &runs.Interrupts{MessageID: "m-" + id, Items: []runs.Interrupt{{Call: runs.Call{ID: "own-" + id, Approval: &runs.Approval{}}}}}
				all.Adopt(runs.SuspendedChild{AgentRef: runs.AgentRef{Agent: "helper", Limits: input.Limits}, CallID: id, Index: i, Turn: 1, AnswerID: "m-" + id}, existing)
			}
			for i := range all.Items {
				all.Items[i].Decision = &runs.Decision{CallID: all.Items[i].ID, Kind: runs.DecisionReject}
			}
			var mu sync.Mutex
			started := map[string]bool{}
			fixture.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
				mu.Lock()
				defer mu.Unlock()
				started[info.WorkflowExecution.ID] = true
			})
			fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
			in := input
			in.Resume = all
			if cancelled {
				in.Progress = &runs.Progress{Execution: "e", Turn: 1, Cancelled: true}
			}
			fixture.run(in)
			if len(started) != subagents {
				t.Errorf("%d subagents restarted, want %d", len(started), subagents)
			}
		})
	}
}
