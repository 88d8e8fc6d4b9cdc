package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// withinTask is how long a model call stays in its workflow task. It is less than half of the task's
// timeout (runs.WorkflowTaskTimeout), so that the SDK need not extend the task.
const withinTask = 1200 * time.Millisecond

// callWithinTask makes the model call of a step as a local activity. The answer has ContinuesOn if
// the call has left the workflow task, or if there is no room for it there. An error is that of the
// step's first attempt.
func (a *Activities) callWithinTask(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
	if !a.Calls.enterTask() {
		return runs.ModelAnswer{ContinuesOn: runs.TaskQueue}, nil
	}
	var left *activeCall
	defer func() { a.Calls.leaveTask(left) }()
	var updated <-chan struct{} // updates address the thread, which is another workflow than a child
	if in.Child == nil {
		var forget func()
		updated, forget = a.Commands.Updates(runOf(in.Run).Thread)
		defer forget()
	}
	within, cancel := context.WithTimeout(ctx, withinTask)
	defer cancel()
	if a.Presence != nil {
		isRepeated, err := a.Presence.AwaitWorkflowTask(within, activity.GetInfo(ctx).WorkflowExecution.RunID)
		if err != nil {
			return runs.ModelAnswer{ContinuesOn: runs.TaskQueue}, nil // the log is unavailable: an activity can wait for it
		}
		// Temporal was away for longer than the task's timeout: another worker may still make the call.
		if isRepeated {
			if queue := a.Calls.ask(within, a.Commands, keyOf(in.Step)); queue != "" {
				return runs.ModelAnswer{ContinuesOn: queue}, nil
			}
		}
	}
	call := a.Calls.begin(ctx, keyOf(in.Step), func(ctx context.Context) (answer runs.ModelAnswer, err error) {
		defer recoverPanic(ctx, &err)
		work, release := a.cancellable(ctx, in.Step)
		defer release()
		answer, err = a.callModel(work, in)
		return answer, activityError(work, err)
	})
	select {
	case <-call.done:
		return a.Calls.take(call)
	case <-within.Done():
		if ctx.Err() != nil { // the deadline of the run or step
			call.cancel(context.Cause(ctx))
			return a.Calls.take(call)
		}
	case <-updated:
	case <-a.Calls.leaving:
	}
	left = call
	return runs.ModelAnswer{ContinuesOn: a.Calls.queue}, nil
}
