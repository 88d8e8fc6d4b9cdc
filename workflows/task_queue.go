package workflows

import (
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A tool call may go to a task queue that only some workers serve, or none. Temporal does not
// distinguish a queue without workers from one whose workers are busy. So the call is scheduled
// with a short ScheduleToStartTimeout. When that passes, the activity queue.await looks for
// announcements of workers, and the call is scheduled again, or fails.

// queuedCall is a call on its way to a task queue of its own. It lives until the call ends, and has
// one activity under way at a time: tool.call or queue.await.
type queuedCall struct {
	turn         *toolCalls // gets the end of the call
	call         call
	in           runs.ToolCall
	summary      string
	startTimeout time.Duration // ScheduleToStartTimeout of the next tool.call
}

// Bounds of the start timeout. It doubles from try to try, so that a queue with a long backlog
// costs few tries.
const (
	minStartTimeout = 15 * time.Second
	maxStartTimeout = 5 * time.Minute
)

// isForQueue reports whether the call is made by workers of its tool's own task queue.
func (c call) isForQueue() bool { return c.queue != "" && c.isMade() }

// sendToQueue makes a call on the task queue of its tool. It does not block.
func (t *toolCalls) sendToQueue(c call, in runs.ToolCall, summary string) {
	s := &queuedCall{turn: t, call: c, in: in, summary: summary, startTimeout: minStartTimeout}
	s.send()
}

// send schedules the call on its queue. A repeated call does not take effect twice: both activities
// have the same step ID, and the worker finds the record of the first in the log.
func (s *queuedCall) send() {
	options := s.turn.run.options(s.turn.ctx, s.summary)
	options.TaskQueue, options.ScheduleToStartTimeout = s.call.queue, s.startTimeout
	ctx := workflow.WithActivityOptions(s.turn.ctx, options)
	s.turn.changes.AddFuture(workflow.ExecuteActivity(ctx, runs.ActivityCallTool, s.in), s.onCallEnd)
}

// onCallEnd handles the end of tool.call: it ends the call, or looks for workers if none has taken
// it in time.
func (s *queuedCall) onCallEnd(future workflow.Future) {
	var timeoutErr *temporal.TimeoutError
	if err := future.Get(s.turn.ctx, nil); !errors.As(err, &timeoutErr) || timeoutErr.TimeoutType() != enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
		s.turn.onEnd(s.call, s.in.Lane, future)
		return
	}
	ctx := workflow.WithActivityOptions(s.turn.ctx, s.turn.run.options(s.turn.ctx, "workers of "+s.call.queue))
	s.turn.changes.AddFuture(workflow.ExecuteActivity(ctx, runs.ActivityAwaitQueue, runs.AwaitQueue{Queue: s.call.queue}), s.onQueueAnswer)
}

// onQueueAnswer handles the end of queue.await: it schedules the call again if there are workers,
// and otherwise ends the call with the activity's error.
func (s *queuedCall) onQueueAnswer(future workflow.Future) {
	if err := future.Get(s.turn.ctx, nil); err != nil {
		s.turn.onEnd(s.call, s.in.Lane, future)
		return
	}
	s.startTimeout = min(2*s.startTimeout, maxStartTimeout)
	s.send()
}
