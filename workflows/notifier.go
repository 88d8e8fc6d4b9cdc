package workflows

import (
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// notifier sends the notifications about interrupts of one thread execution, one after the other,
// each until it succeeds. It runs in a coroutine of its own: decisions and the run do not wait for
// it. The pending notifications are in the interrupts themselves, so an execution that continues as
// new hands them on with these. Only workflow coroutines touch it.
type notifier struct {
	run        *runs.Input               // of the active run, which a program replaces
	interrupts *interrupts               // of the active run
	sending    bool                      // the activity interrupt.notify is under way
	stopped    bool                      // the next execution sends the pending ones
	detached   map[*runs.Interrupts]bool // a workflow of their own sends their notifications
}

const (
	// stopTimeout is how long an execution that continues as new waits for the notification that
	// is under way. After that the next execution sends it again.
	stopTimeout = time.Second
	// drainTimeout is how long drain sends notifications. A client's next run may be waiting for
	// the thread.
	drainTimeout = 2 * time.Second
)

// start starts the coroutine that sends notifications until the execution ends, also when the run
// is cancelled.
func (n *notifier) start(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			_ = workflow.Await(ctx, func() bool { return n.next() != nil && !n.stopped })
			set := n.next()
			if notice := set.Notification(n.run.Run); len(notice.Items) > 0 {
				n.send(ctx, notice)
			}
			set.Pending = set.Pending[1:]
		}
	})
}

// send sends one notification and blocks until it is sent.
func (n *notifier) send(ctx workflow.Context, notice runs.Notification) {
	n.sending = true
	defer func() { n.sending = false }()
	sendNotification(ctx, notice)
}

// next returns the interrupts with the first pending notification; nil = none is pending.
func (n *notifier) next() *runs.Interrupts {
	return n.interrupts.nextPending(n.run.Resume, n.detached)
}

// stop begins no further notification, and blocks up to stopTimeout for the one under way. The
// interrupts carry the pending ones to the next execution.
func (n *notifier) stop(ctx workflow.Context) {
	if n.stopped = true; n.sending {
		_, _ = workflow.AwaitWithTimeout(ctx, stopTimeout, func() bool { return !n.sending })
	}
}

// drain sends the pending notifications when the run is over, before the execution ends or
// continues with a queued run. It blocks up to drainTimeout, and hands over those that take
// longer: the thread becomes free, and none is lost.
func (n *notifier) drain(ctx workflow.Context) {
	if n.next() == nil {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if sent, _ := workflow.AwaitWithTimeout(ctx, drainTimeout, func() bool { return n.next() == nil }); !sent {
		n.detach(ctx, append([]*runs.Interrupts{n.run.Resume, n.interrupts.held, n.interrupts.afterEnd}, n.interrupts.notifiable()...))
	}
}

// detach starts interrupt.notifications for each of the interrupts with pending notifications,
// also when the run is cancelled, and blocks until these workflows have started. A notification
// that is under way is sent there again.
func (n *notifier) detach(ctx workflow.Context, all []*runs.Interrupts) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, set := range all {
		if !set.HasPending() || n.detached[set] {
			continue
		}
		n.detached[set] = true
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID:            notificationsID(ctx, set),
			ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON, // it outlives the thread
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:         "notifications about interrupts",
		})
		in := runs.NotificationsInput{Thread: n.run.Run, Interrupts: set}
		if err := workflow.ExecuteChildWorkflow(child, runs.TypeNotifications, in).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("notifications about a run's interrupts are not sent", n.run.Run.With(set.RunID).LogAttrs(n.run.Agent, "error", err)...)
		}
	}
}
