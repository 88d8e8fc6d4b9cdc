package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// sendNotification sends a notification (interrupt.notify), and blocks until it is sent: Temporal
// retries without limit. One that fails for good is dropped with a warning: later notifications
// have the present state.
func sendNotification(ctx workflow.Context, n runs.Notification) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: string(n.Event),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	if err := workflow.ExecuteActivity(ctx, runs.ActivityNotify, n).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a notification was not sent", n.Run.LogAttrs(n.Agent, "event", n.Event, "error", err)...)
	}
}

// notificationsID returns the workflow ID for the pending notifications about interrupts. It is
// unique in the thread: the interrupts of a message may come in rounds, and several executions may
// send notifications about the same interrupts, each from another number on.
func notificationsID(ctx workflow.Context, set *runs.Interrupts) string {
	return workflow.GetInfo(ctx).WorkflowExecution.ID + "/notices/" + digest(8, fmt.Sprintf("%s\x00%s\x00%d\x00%d", set.RunID, set.MessageID, set.Round, set.Pending[0].Number))
}

// SendNotifications is interrupt.notifications.v1: it sends the pending notifications of one set of
// interrupts, oldest first. It ends when all are sent, and never fails.
func SendNotifications(ctx workflow.Context, in runs.NotificationsInput) error {
	for set := in.Interrupts; set.HasPending(); set.Pending = set.Pending[1:] {
		if n := set.Notification(in.Thread); len(n.Items) > 0 {
			sendNotification(ctx, n)
		}
	}
	return nil
}
