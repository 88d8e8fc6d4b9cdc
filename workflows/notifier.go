package workflows

import (
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// notifier sends the notifications about interrupts, one after the other, each as often as it
// takes. Neither the decision nor the run waits for it. An execution that continues as new carries
// on what is left.
type notifier struct {
	run        *runs.Input // the run that is active
	interrupts *interrupts
	sending    bool                      // an activity is under way
	stopped    bool                      // the next execution sends the rest
	handedOver map[*runs.Interrupts]bool // another workflow sends the rest
}

const (
	// stopPatience is how long an execution that continues as new waits for the notification that
	// is under way, which the next one would otherwise send again.
	stopPatience = time.Second
	// drainPatience is how long the last execution of a thread sends notifications. Clients may be
	// waiting for the thread to be free.
	drainPatience = 2 * time.Second
)

// start sends notifications until the execution ends, also when the run is cancelled.
func (n *notifier) start(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			_ = workflow.Await(ctx, func() bool { return n.next() != nil && !n.stopped })
			w := n.next()
			if notice := w.Notification(n.run.Run); len(notice.Calls) > 0 {
				n.send(ctx, notice)
			}
			w.Pending = w.Pending[1:]
		}
	})
}

func (n *notifier) send(ctx workflow.Context, notice runs.Notification) {
	n.sending = true
	defer func() { n.sending = false }()
	sendNotification(ctx, notice)
}

// next returns the interrupts of which people are to be notified first; nil = there are none.
func (n *notifier) next() *runs.Interrupts { return n.interrupts.untold(n.run.Resume, n.handedOver) }

// stop begins no further notification: the next execution sends the rest.
func (n *notifier) stop(ctx workflow.Context) {
	if n.stopped = true; n.sending {
		_, _ = workflow.AwaitWithTimeout(ctx, stopPatience, func() bool { return !n.sending })
	}
}

// drain sends what is left when the thread has no further execution. What takes longer is handed
// over, so that the thread is free and nothing is lost.
func (n *notifier) drain(ctx workflow.Context) {
	if n.next() == nil {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if sent, _ := workflow.AwaitWithTimeout(ctx, drainPatience, func() bool { return n.next() == nil }); !sent {
		n.handOver(ctx, append([]*runs.Interrupts{n.run.Resume, n.interrupts.held, n.interrupts.afterEnd}, n.interrupts.notifiable()...))
	}
}

// handOver starts a workflow for each of the interrupts that has notifications left, also when the
// run is cancelled. The notification that is under way is sent there again.
func (n *notifier) handOver(ctx workflow.Context, all []*runs.Interrupts) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, w := range all {
		if !w.HasPending() || n.handedOver[w] {
			continue
		}
		n.handedOver[w] = true
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID:            noticesID(ctx, w),
			ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:         "notifications about interrupts",
		})
		in := runs.NotificationsInput{Thread: n.run.Run, Interrupts: w}
		if err := workflow.ExecuteChildWorkflow(child, runs.TypeNotices, in).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("notifications about a run's interrupts are not sent", n.run.Run.With(w.RunID).LogAttrs(n.run.Agent, "error", err)...)
		}
	}
}
