package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

const (
	// deliveryWindow is for how long an event is sent again to a receiver that does not accept
	// it.
	deliveryWindow  = 24 * time.Hour
	deliveryAttempt = 30 * time.Second // bounds one request
	deliveryPause   = 15 * time.Minute // the longest between two attempts
)

// Deliver is webhook.deliver.v1: it sends one event to one webhook (webhook.send) until the
// receiver accepts it, for up to deliveryWindow. The result is the receiver's final status: a
// success, or 410 if it wants no more events. An error means that the receiver did not accept the
// event in time.
func Deliver(ctx workflow.Context, in runs.Delivery) (out runs.DeliveryResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: deliveryWindow, StartToCloseTimeout: deliveryAttempt, Summary: in.Webhook,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: deliveryPause},
	})
	err = workflow.ExecuteActivity(ctx, runs.ActivitySendWebhook, in).Get(ctx, &out)
	return out, err
}
