package workflows_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

// checkedAnswer is a final answer that was checked.
func checkedAnswer(seq uint64, check runs.OutputCheck) runs.ModelAnswer {
	a := modelAnswer(seq)
	a.Output = check
	return a
}

// TestRepairsAreTurns: an invalid answer that is sent back begins another turn, which knows how many there were. The run
// ends with the record of the valid answer.
func TestRepairsAreTurns(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn < 3 {
			return checkedAnswer(uint64(10*in.Turn), runs.OutputRepair), nil
		}
		return checkedAnswer(30, runs.OutputValid), nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "end of the run: record of the result", finish.Result, 30)
	var repairs []int
	for _, call := range fixture.modelCalls {
		repairs = append(repairs, call.Repairs)
	}
	wantEqual(t, "repairs before each model call", repairs, []int{0, 1, 2})
}

// TestInvalidAnswerFailsRun: the run fails with the errors of its last answer, unless that is not its last one because
// steering has arrived.
func TestInvalidAnswerFailsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	steered := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, make(chan any, 1))
		close(steered)
	}, time.Millisecond)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		<-steered
		return checkedAnswer(uint64(10*in.Turn), runs.OutputInvalid), nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
	wantEqual(t, "code", result.Code, "invalid_output")
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	wantEqual(t, "end of the run: record with the errors", finish.Detail, 20)
	wantEqual(t, "end of the run: record of the result", finish.Result, 0)
}

// TestRepairsSurviveContinueAsNew: the next execution knows how many answers were sent back.
func TestRepairsSurviveContinueAsNew(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.env.SetContinueAsNewSuggested(true)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return checkedAnswer(10, runs.OutputRepair), nil }
	next := fixture.runUntilContinued(input)
	nextFixture := setup(t)
	nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return checkedAnswer(20, runs.OutputValid), nil }
	_, finish := nextFixture.run(next)
	wantEqual(t, "repairs before the model call", nextFixture.modelCalls[0].Repairs, 1)
	wantEqual(t, "end of the run: record of the result", finish.Result, 20)
}

// TestHandoffBeginsRepairsAnew: the agent that takes the thread over has its own repairs.
func TestHandoffBeginsRepairsAnew(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, modelAnswer(10, "over"))
	first := fixture.model
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		switch {
		case in.Turn == 1:
			return checkedAnswer(5, runs.OutputRepair), nil
		case in.Turn == 2:
			in.Turn, in.Closes = 1, ""
			return first(in)
		}
		return checkedAnswer(30, runs.OutputValid), nil
	}
	fixture.run(input)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 3)
	wantEqual(t, "repairs before the handoff", fixture.modelCalls[1].Repairs, 1)
	wantEqual(t, "repairs after the handoff", fixture.modelCalls[2].Repairs, 0)
}

// TestCancelledRepair: a run that is cancelled while an invalid answer is written ends as cancelled, and not as failed.
func TestCancelledRepair(t *testing.T) {
	t.Parallel()
	for _, check := range []runs.OutputCheck{runs.OutputRepair, runs.OutputInvalid} {
		fixture, sent := setup(t), make(chan struct{})
		fixture.env.RegisterDelayedCallback(func() {
			fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
			close(sent)
		}, time.Millisecond)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			<-sent
			return checkedAnswer(10, check), nil
		}
		result, _ := fixture.run(input)
		wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
		wantEqual(t, "number of model calls", len(fixture.modelCalls), 1)
	}
}

// TestRefusedAnswerFailsRun: a run whose answer must fit a schema fails with content_filter if the model refused, and with
// invalid_output if the answer was cut.
func TestRefusedAnswerFailsRun(t *testing.T) {
	t.Parallel()
	for finish, code := range map[string]string{runs.FinishContentFilter: "content_filter", runs.FinishLength: "invalid_output"} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			a := checkedAnswer(10, runs.OutputInvalid)
			a.Finish = finish
			return a, nil
		}
		result, end := fixture.run(input)
		wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
		wantEqual(t, "code", result.Code, code)
		wantEqual(t, "end of the run: record with the reason", end.Detail, 10)
	}
}
