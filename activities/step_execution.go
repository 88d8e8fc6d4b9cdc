package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file is the frame of the activities that the workflow first executes as local activities:
// model calls, tool calls and advances.

// withinTask is how long steps are executed within one workflow task, from its arrival on. It is less
// than half of the task's timeout (runs.WorkflowTaskTimeout), so that the SDK need not extend the task.
const withinTask = 1200 * time.Millisecond

// maxLocalAnswer bounds the encoded answer of a step within a workflow task, in bytes: the answers of
// hundreds of steps are reported with one task, and Temporal takes at most 4 MiB. A step with a larger
// answer leaves the task.
const maxLocalAnswer = 4 << 10

// localAnswer is the output of an activity that may be a local activity: it embeds runs.LocalAnswer.
type localAnswer[Out any] interface {
	*Out
	ContinueOn(queue string)
}

// executeStep executes do as an attempt of a step. As a local activity it executes do within the
// workflow task, or begins it there (local_steps.go). As an activity it awaits the step that has left
// such a task, if this process has it.
func executeStep[Out any, P localAnswer[Out]](ctx context.Context, a *Activities, s runs.Step, do func(context.Context) (Out, error)) (answer Out, err error) {
	ctx = inStep(ctx, s)
	defer recoverPanic(ctx, &err)
	if activity.GetInfo(ctx).IsLocalActivity {
		return executeWithinTask[Out, P](ctx, a, s, do)
	}
	work, leave, err := a.beginAttempt(ctx)
	if err != nil {
		return answer, activityError(ctx, err)
	}
	defer leave()
	if left := a.Local.claim(keyOf(s)); left != nil {
		return answerOf[Out](a.Local.await(work, left))
	}
	answer, err = do(work)
	return answer, activityError(ctx, err)
}

// executeWithinTask executes do as the first attempt of a step, in a local activity. The answer has
// ContinuesOn if the step has left the workflow task, or if there is no room for it there. An error is
// that of the attempt.
func executeWithinTask[Out any, P localAnswer[Out]](ctx context.Context, a *Activities, s runs.Step, do func(context.Context) (Out, error)) (answer Out, err error) {
	continued := func(queue string) (Out, error) {
		P(&answer).ContinueOn(queue)
		return answer, nil
	}
	if !a.Local.enterTask() {
		return continued(runs.TaskQueue)
	}
	var left *localStep
	defer func() { a.Local.leaveTask(left) }()
	var updated <-chan struct{} // updates address the thread, which is another workflow than a child
	if s.Child == nil {
		var forget func()
		updated, forget = a.Commands.Updates(runOf(s.Run).Thread)
		defer forget()
	}
	within, cancel := context.WithTimeout(ctx, withinTask)
	defer cancel()
	if a.Presence != nil {
		received, isRepeated, err := a.Presence.AwaitWorkflowTask(within, activity.GetInfo(ctx).WorkflowExecution.RunID)
		if err != nil {
			return continued(runs.TaskQueue) // the log is unavailable: an activity can wait for it
		}
		// Temporal was away for longer than the task's timeout: another worker may still execute the step.
		if isRepeated {
			if queue := a.Local.ask(within, a.Commands, keyOf(s)); queue != "" {
				return continued(queue)
			}
		}
		var release context.CancelFunc
		within, release = context.WithDeadline(within, received.Add(withinTask))
		defer release()
	}
	step := a.Local.begin(ctx, keyOf(s), func(ctx context.Context) (_ any, err error) {
		defer recoverPanic(ctx, &err)
		answer, err := do(ctx)
		return answer, activityError(ctx, err)
	})
	select {
	case <-step.done:
		if isSmall(step) {
			return answerOf[Out](a.Local.take(step))
		}
	case <-within.Done():
		if ctx.Err() != nil { // the deadline of the run or step
			step.cancel(context.Cause(ctx))
			return answerOf[Out](a.Local.take(step))
		}
	case <-updated:
	case <-a.Local.leaving:
	}
	left = step
	return continued(a.Local.queue)
}

// doneBefore returns the done record of a step that could not begin, with err, because later steps or
// runs have followed it: a workflow task with this step and its successors was lost after they had
// written, and Temporal repeats it. Without such a record the error is errFailedBefore if the step failed
// in that task, and else err.
func (a *Activities) doneBefore(ctx context.Context, place stream.Place, err error) (*stream.Record, error) {
	if !errors.Is(err, stream.ErrOver) && !errors.Is(err, snapshot.ErrConversationChanged) {
		return nil, err
	}
	done, doneErr := a.Log.Done(ctx, place)
	if done != nil || doneErr != nil {
		return done, doneErr
	}
	if isFollowed, followedErr := a.Log.IsFollowed(ctx, place); followedErr != nil {
		return nil, followedErr
	} else if isFollowed {
		return nil, errFailedBefore
	}
	return nil, err
}

// errFailedBefore is the error of a step that failed in a workflow task that was lost. The log has what
// the workflow did then, so that the kind of the failure does not matter any more.
var errFailedBefore = errors.New("activities: the step failed in a workflow task that was lost")

// IsLogAhead is log.ahead.v1, a local activity: it reports whether the lane of the agent, or that of a
// tool call, has records after those that the workflow knows, or that it has the end of a step (Done).
func (a *Activities) IsLogAhead(ctx context.Context, in runs.LogCheck) (isAhead bool, err error) {
	ctx = inStep(ctx, in.Step)
	defer recoverPanic(ctx, &err)
	if in.Done {
		done, err := a.Log.Done(ctx, agentPlace(in.Step, in.ID))
		return done != nil, activityError(ctx, err)
	}
	isAhead, err = a.Log.HasLater(ctx, agentPlace(in.Step, in.ID))
	if call := in.Call; call != nil && !isAhead && err == nil {
		isAhead, err = a.Log.HasLater(ctx, toolPlace(runs.ToolCall{Step: in.Step, Lane: call.Lane, LaneAfter: call.After}))
	}
	return isAhead, activityError(ctx, err)
}

// isSmall reports whether the answer of a step that has ended may be reported with a workflow task.
func isSmall(step *localStep) bool {
	if step.err != nil {
		return true
	}
	body, err := runs.Encode(step.answer)
	return err != nil || len(body) <= maxLocalAnswer // Temporal's client reports an error of the encoding
}

// answerOf returns the answer of a local step with its type.
func answerOf[Out any](answer any, err error) (Out, error) {
	typed, _ := answer.(Out) // it is nil if the step has failed
	return typed, err
}
