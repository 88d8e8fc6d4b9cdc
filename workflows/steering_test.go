package workflows_test

import (
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestMissedSteering: a message that a model call did not receive, because the call began in a workflow
// task that was lost, is sent with the next one.
func TestMissedSteering(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers := make(chan any, 1)
	fixture.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, answers)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		switch in.Turn {
		case 1:
			return modelAnswer(10, "c0"), nil
		case 2:
			a := modelAnswer(20)
			a.Missed = len(in.Steered)
			return a, nil
		}
		return modelAnswer(30), nil
	}
	fixture.run(input)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 3)
	wantEqual(t, "messages of the call that misses them", fixture.modelCalls[1].Steered, []uint64{7})
	wantEqual(t, "messages of the next call", fixture.modelCalls[2].Steered, []uint64{7})
}
