package workflows

import (
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A call may go to a task queue that only some workers serve, or none. Temporal does not
// distinguish a queue without workers from one whose workers are busy. Workers announce themselves,
// and the activity queue.await reads these announcements.

// sending is a call on its way to a task queue of its own.
type sending struct {
	turn     *toolCalls
	call     call
	in       runs.ToolCall
	summary  string
	patience time.Duration
}

// The patience with a call that no worker takes grows from look to look, so that a queue that is
// long costs few.
const (
	minPatience = 15 * time.Second
	maxPatience = 5 * time.Minute
)

// sendToQueue makes a call on the task queue of its tool.
func (t *toolCalls) sendToQueue(c call, in runs.ToolCall, summary string) {
	s := &sending{turn: t, call: c, in: in, summary: summary, patience: minPatience}
	s.send()
}

// send schedules the call on its queue. A repeated call does not take effect twice: the worker
// finds its record in the log.
func (s *sending) send() {
	options := s.turn.run.options(s.turn.ctx, s.summary)
	options.TaskQueue, options.ScheduleToStartTimeout = s.call.queue, s.patience
	ctx := workflow.WithActivityOptions(s.turn.ctx, options)
	s.turn.changes.AddFuture(workflow.ExecuteActivity(ctx, runs.ActivityCallTool, s.in), s.arrive)
}

// arrive ends the call, unless no worker has taken it yet.
func (s *sending) arrive(f workflow.Future) {
	var late *temporal.TimeoutError
	if err := f.Get(s.turn.ctx, nil); !errors.As(err, &late) || late.TimeoutType() != enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
		s.turn.onEnd(s.call, s.in.Lane, f)
		return
	}
	ctx := workflow.WithActivityOptions(s.turn.ctx, s.turn.run.options(s.turn.ctx, "workers of "+s.call.queue))
	s.turn.changes.AddFuture(workflow.ExecuteActivity(ctx, runs.ActivityAwaitQueue, runs.AwaitQueue{Queue: s.call.queue}), s.again)
}

// again schedules the call again when there are workers, and ends it if none have come.
func (s *sending) again(f workflow.Future) {
	if err := f.Get(s.turn.ctx, nil); err != nil {
		s.turn.onEnd(s.call, s.in.Lane, f)
		return
	}
	s.patience = min(2*s.patience, maxPatience)
	s.send()
}
