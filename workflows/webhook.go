package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Delivery starts TypeDelivery: it names an event and the webhook that is told of it. What the event says is
// where the event is kept.
type Delivery struct {
	Tenant  string `json:"tenant"`
	Event   string `json:"event"` // its id
	Webhook string `json:"webhook"`
}

// Delivered is what a receiver answered at last: a success, or 410, which says that it wants no more of it.
type Delivered struct {
	Status int `json:"status"`
}

const (
	// deliveryPatience is for how long a message is sent again to a receiver that does not take it.
	deliveryPatience = 24 * time.Hour
	deliveryAttempt  = 30 * time.Second
	deliveryPause    = 15 * time.Minute // the longest between two attempts
)

// Deliver is webhook.deliver.v1: it sends one message to one webhook, until that has taken it or a day has
// passed.
func Deliver(ctx workflow.Context, in Delivery) (out Delivered, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: deliveryPatience, StartToCloseTimeout: deliveryAttempt, Summary: in.Webhook,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: deliveryPause},
	})
	err = workflow.ExecuteActivity(ctx, ActivityDeliver, in).Get(ctx, &out)
	return out, err
}
