package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A worker may die within a workflow task, after it has executed steps there. Temporal repeats the task,
// and each step finds its record. But the repeated task may have what the lost one had not: a cancel, or
// the passing of a deadline. A pipeline that stops for such a reason first catches up with the log,
// because it must compensate for all that the lost task has done. Other agents need not: the activity
// run.finish writes the end of the run after whatever the log has, and counts the usage there.

// isBehind reports whether the log has records of the agent of which this execution does not know. It
// is also true if the log is unavailable for 5 s. It works although ctx is cancelled.
func (r *run) isBehind(ctx workflow.Context) (isBehind bool) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 5 * time.Second, RetryPolicy: retryPolicy(0), Summary: "is the log ahead?",
	})
	err := workflow.ExecuteLocalActivity(ctx, runs.ActivityIsBehind, r.ownStep("behind")).Get(ctx, &isBehind)
	return isBehind || err != nil
}

// catchUp executes the active step of a pipeline that has to stop, as far as the log has it: a step
// that is not done ends as cancelled (runs.Step.Stops), and starts no child and no call of another task
// queue.
func (p pipelineExecutor) catchUp(ctx workflow.Context) (end ending, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	p.run.control.catchesUp = true
	defer func() { p.run.control.catchesUp = false }()
	if p.position.Active.CallID != "" {
		end, err = p.runCall(ctx)
	} else {
		end, err = p.runAgent(ctx)
	}
	if end.interrupts != nil || p.run.interrupts.held != nil { // nobody has learned of them
		end = cancelledEnding
	}
	return end, err
}
