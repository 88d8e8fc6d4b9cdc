package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// TestStopAfterLostTask: a worker dies within a workflow task, after some steps of it were recorded, and
// the run is cancelled, or its time is over, before Temporal repeats the task. What the lost task has
// done counts, and is compensated for.
func TestStopAfterLostTask(t *testing.T) {
	t.Parallel()
	inOrder := setupPipeline(t, journey).stepsToEnd(stepsInput())
	mustEqual(t, "number of steps", len(inOrder), 7)
	for done, want := range []string{
		"", "", "book book~undo", "book book~undo", "book pay pay~undo book~undo", "book pay pay~undo book~undo", "book pay ship", "book pay ship",
	} {
		for reason, outcome := range map[string]runs.Outcome{"": runs.OutcomeCancelled, runs.CodeLimitDuration: runs.OutcomeError} {
			t.Run(fmt.Sprintf("%d steps %s", done, reason), func(t *testing.T) {
				t.Parallel()
				f, in := setupPipeline(t, journey), stepsInput()
				for _, step := range inOrder[:done] { // what the lost task has done
					f.repeat(step)
				}
				if reason == "" {
					f.onExecution = func(execution *fixture, _ any) { execution.env.RegisterDelayedCallback(f.cancelRun, 0) }
				} else {
					in.Limits.Duration = 0
				}
				code := reason
				if done >= 6 { // the lost task has done the last step
					outcome, code = runs.OutcomeSuccess, ""
				}
				f.wantResult(f.runToEnd(in), outcome, code, strings.Fields(want)...)
			})
		}
	}
}

// TestStopAfterLostTaskOfResumedRun is TestStopAfterLostTask for a run that continues with decisions.
func TestStopAfterLostTaskOfResumedRun(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: asks, approve: {message: "Pay?"}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
`
	inOrder := setupPipeline(t, steps).stepsToEnd(stepsInput())
	resumes := func(in any) bool { a, ok := in.(runs.AdvanceInput); return ok && a.Resumes }
	lost := inOrder[slices.IndexFunc(inOrder, resumes):]
	mustEqual(t, "number of steps after the decision", len(lost), 5)
	for done, want := range []string{
		"book asks book~undo", "book asks book~undo", "book asks book~undo", "book asks book~undo", "book asks pay", "book asks pay",
	} {
		t.Run(fmt.Sprintf("%d steps", done), func(t *testing.T) {
			t.Parallel()
			f := setupPipeline(t, steps)
			isRepeated := false
			f.onStep = func(in any) {
				if isRepeated || !resumes(in) {
					return
				}
				isRepeated = true
				for _, step := range lost[:done] {
					f.repeat(step)
				}
				f.execution.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: in.(runs.AdvanceInput).Run.ID})
			}
			outcome := runs.OutcomeCancelled
			if done >= len(lost)-1 { // the lost task has done the last step
				outcome = runs.OutcomeSuccess
			}
			f.wantResult(f.runToEnd(stepsInput()), outcome, "", strings.Fields(want)...)
		})
	}
}

// TestStopAfterLostTaskAfterBranches is TestStopAfterLostTask for the task in which the last branch of a
// step has ended.
func TestStopAfterLostTaskAfterBranches(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: all, map: {items: "[1, 2]", concurrency: 1, steps: [{name: do, tool: do}]}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	inOrder := setupPipeline(t, steps).stepsToEnd(stepsInput())
	endsBranches := func(in any) bool { a, ok := in.(runs.AdvanceInput); return ok && a.ID == "all/1/advance/2" }
	lost := inOrder[slices.IndexFunc(inOrder, endsBranches)+1:]
	mustEqual(t, "number of steps after the branches", len(lost), 5)
	for done, want := range []string{"", "", "pay pay~undo", "pay pay~undo", "pay ship", "pay ship"} {
		t.Run(fmt.Sprintf("%d steps", done), func(t *testing.T) {
			t.Parallel()
			f := setupPipeline(t, steps)
			f.failAfterAdvance = func(in runs.AdvanceInput) error {
				if endsBranches(in) {
					for _, step := range lost[:done] {
						f.repeat(step)
					}
					f.execution.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: in.Run.ID})
				}
				return nil
			}
			outcome := runs.OutcomeCancelled
			if done >= len(lost)-1 {
				outcome = runs.OutcomeSuccess
			}
			f.wantResult(f.runToEnd(stepsInput()), outcome, "", append([]string{"all/0/do", "all/1/do"}, strings.Fields(want)...)...)
		})
	}
}

// TestStopAfterLostTaskAfterWait is TestStopAfterLostTask for the task in which a run is resumed that was
// paused until after the wait for the next try of a step.
func TestStopAfterLostTaskAfterWait(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: try, tool: try, retry: {attempts: 2, interval: 1m}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	resumeAfter := func(f *pipelineFixture, wake func()) {
		f.executeStep = eventsByPath(map[string]string{"try": "!lost"})
		f.failAfterAdvance = func(in runs.AdvanceInput) error {
			if in.ID == "advance/2" { // it begins the wait
				execution := f.execution
				execution.update(runs.UpdatePause, runs.PauseRequest{}, make(chan any, 1))
				execution.env.RegisterDelayedCallback(func() {
					wake()
					execution.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1))
				}, 2*time.Minute)
			}
			return nil
		}
	}
	calm := setupPipeline(t, steps)
	var lost []any
	resumeAfter(calm, func() { calm.onStep = func(in any) { lost = append(lost, in) } })
	calm.runToEnd(stepsInput())
	mustEqual(t, "number of steps after the wait", len(lost), 7)
	for done, want := range []string{
		"try", "try", "try try~2", "try try~2", "try try~2 pay pay~undo", "try try~2 pay pay~undo", "try try~2 pay ship", "try try~2 pay ship",
	} {
		t.Run(fmt.Sprintf("%d steps", done), func(t *testing.T) {
			t.Parallel()
			f := setupPipeline(t, steps)
			resumeAfter(f, func() {
				for _, step := range lost[:done] {
					f.repeat(step)
				}
				f.cancelRun()
			})
			outcome := runs.OutcomeCancelled
			if done >= len(lost)-1 {
				outcome = runs.OutcomeSuccess
			}
			f.wantResult(f.runToEnd(stepsInput()), outcome, "", strings.Fields(want)...)
		})
	}
}

// TestStopAfterLostTaskAfterFailure is TestStopAfterLostTask for the task in which the workflow learns that
// a call has failed for good.
func TestStopAfterLostTaskAfterFailure(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: try, tool: try, onError: continue}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	setupFailing := func(t *testing.T) *pipelineFixture {
		f := setupPipeline(t, steps)
		f.executeStep = eventsByPath(map[string]string{"try": "*gone"})
		return f
	}
	inOrder := setupFailing(t).stepsToEnd(stepsInput())
	followsFailure := func(in any) bool { a, ok := in.(runs.AdvanceInput); return ok && a.FailedStep != nil }
	lost := inOrder[slices.IndexFunc(inOrder, followsFailure):]
	mustEqual(t, "number of steps after the failure", len(lost), 5)
	for done, want := range []string{"book~undo", "book~undo", "pay pay~undo book~undo", "pay pay~undo book~undo", "pay ship", "pay ship"} {
		for reason, outcome := range map[string]runs.Outcome{"": runs.OutcomeCancelled, runs.CodeLimitDuration: runs.OutcomeError} {
			t.Run(fmt.Sprintf("%d steps %s", done, reason), func(t *testing.T) {
				t.Parallel()
				f, in, code := setupFailing(t), stepsInput(), reason
				f.onExecution = func(execution *fixture, _ any) {
					call := execution.tool
					execution.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
						answer, err := call(in)
						if err == nil {
							return answer, nil
						}
						for _, step := range lost[:done] {
							f.repeat(step)
						}
						if reason == "" {
							f.cancelRun()
						} else {
							f.awaitTime(slowStep)
						}
						return answer, err
					}
				}
				if reason != "" {
					in.Limits.Duration = slowStep / 2
				}
				if done >= len(lost)-1 {
					outcome, code = runs.OutcomeSuccess, ""
				}
				f.wantResult(f.runToEnd(in), outcome, code, append([]string{"book", "try"}, strings.Fields(want)...)...)
			})
		}
	}
}

// TestStopAfterLostTaskOfHeldRun is TestStopAfterLostTask for the task that applies the decisions of a held
// run.
func TestStopAfterLostTaskOfHeldRun(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: asks, approve: {message: "Pay?"}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	in := stepsInput()
	in.Hold = true
	// setupHeld calls onDecided with the input of the execution that begins with the decisions. They are
	// made when the run is parked.
	setupHeld := func(t *testing.T, onDecided func(f *pipelineFixture, in *runs.Input)) *pipelineFixture {
		f := setupPipeline(t, steps)
		f.withholdsDecisions = true
		f.onExecution = func(_ *fixture, in any) {
			switch in := in.(type) {
			case *runs.ParkedInput:
				f.withholdsDecisions = false
				f.decide(in.Run.Progress.Held)
			case *runs.Input:
				onDecided(f, in)
			}
		}
		return f
	}
	var lost []any
	setupHeld(t, func(calm *pipelineFixture, _ *runs.Input) {
		calm.onStep = func(in any) { lost = append(lost, in) }
	}).runToEnd(in)
	mustEqual(t, "number of steps after the decision", len(lost), 6)
	for i, want := range []string{"book asks book~undo", "book asks book~undo", "book asks pay pay~undo book~undo", "book asks pay pay~undo book~undo", "book asks pay ship", "book asks pay ship"} {
		done := i + 1
		t.Run(fmt.Sprintf("%d steps", done), func(t *testing.T) {
			t.Parallel()
			f := setupHeld(t, func(f *pipelineFixture, in *runs.Input) {
				for _, step := range lost[:done] {
					f.repeat(step)
				}
				in.Progress.Cancelled = true
			})
			outcome := runs.OutcomeCancelled
			if done >= len(lost)-1 {
				outcome = runs.OutcomeSuccess
			}
			f.wantResult(f.runToEnd(in), outcome, "", strings.Fields(want)...)
		})
	}
}

// TestCancelAfterLostEndWithInterrupts: a lost workflow task has ended the run of an agent without steps with
// its interrupts. When it is repeated with a cancel, the thread must keep, or resolve, the interrupts that the
// log shows as open: the next run records that they are cancelled.
func TestCancelAfterLostEndWithInterrupts(t *testing.T) {
	t.Parallel()
	f := setupInterrupted(t)
	f.existingEnd = &runs.FinishResult{Outcome: runs.OutcomeInterrupt, Seq: 99}
	f.isLogAhead = func(in runs.LogCheck) bool { return in.Run.ID == input.Run.ID } // it has the run's end
	f.env.RegisterDelayedCallback(func() { f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: input.Run.ID}) }, 0)
	began := f.env.Now()
	f.env.ExecuteWorkflow(runs.TypeRun, input)
	if len(f.finished) < 2 {
		t.Errorf("ends of runs = %d after %s, want 2: the thread closes while the log says that it waits for decisions (%v)", len(f.finished), f.env.Now().Sub(began), f.env.GetWorkflowError())
	}
}

// TestCancelAfterLostLimitInterrupt: the same for a question about a soft limit.
func TestCancelAfterLostLimitInterrupt(t *testing.T) {
	t.Parallel()
	f := setupLimits(t)
	f.existingEnd = &runs.FinishResult{Outcome: runs.OutcomeInterrupt, Seq: 99}
	f.isLogAhead = func(in runs.LogCheck) bool { return in.Run.ID == input.Run.ID } // it has the run's end
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.LimitInterrupt) (runs.ModelAnswer, error) {
		f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: input.Run.ID})
		a := modelAnswer(in.After+1, "beyond")
		a.InterruptCount, a.Calls[0].Approval = 1, &runs.Approval{Expires: time.Hour}
		return a, nil
	}, activity.RegisterOptions{Name: runs.ActivityLimitInterrupt, DisableAlreadyRegisteredCheck: true})
	f.env.ExecuteWorkflow(runs.TypeRun, inputWithSoftLimits(runs.SoftLimits{Tokens: 100}))
	if len(f.finished) < 2 {
		t.Errorf("ends of runs = %d, want 2: the thread closes while the log says that it waits for decisions", len(f.finished))
	}
}
