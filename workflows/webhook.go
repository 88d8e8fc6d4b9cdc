package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

const (
	// deliveryPatience is for how long a message is sent again to a receiver that does not take it.
	deliveryPatience = 24 * time.Hour
	deliveryAttempt  = 30 * time.Second
	deliveryPause    = 15 * time.Minute // the longest between two attempts
)

// Deliver is webhook.deliver.v1: it sends one event to one webhook until the receiver takes it, for
// up to deliveryPatience.
func Deliver(ctx workflow.Context, in runs.Delivery) (out runs.Delivered, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: deliveryPatience, StartToCloseTimeout: deliveryAttempt, Summary: in.Webhook,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: deliveryPause},
	})
	err = workflow.ExecuteActivity(ctx, runs.ActivityDeliver, in).Get(ctx, &out)
	return out, err
}
