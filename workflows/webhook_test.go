package workflows_test

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// runDelivery runs a delivery to a receiver and returns the number of attempts.
func runDelivery(t *testing.T, receiver func(n int) (runs.DeliveryResult, error)) (out runs.DeliveryResult, tries int, err error) {
	t.Helper()
	env := newEnvironment(t)
	workflows.Register(env, nil)
	env.RegisterActivityWithOptions(func(_ context.Context, in runs.Delivery) (runs.DeliveryResult, error) {
		wantEqual(t, "delivery: webhook", in.Webhook, "chat")
		wantEqual(t, "delivery: event", in.Event, "evt_1")
		wantEqual(t, "delivery: tenant", in.Tenant, "shop")
		tries++
		return receiver(tries)
	}, activity.RegisterOptions{Name: runs.ActivitySendWebhook})
	env.ExecuteWorkflow(runs.TypeDelivery, runs.Delivery{Tenant: "shop", Event: "evt_1", Webhook: "chat"})
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&out)
	}
	return out, tries, err
}

func TestDeliveryIsRetried(t *testing.T) {
	t.Parallel()
	out, tries, err := runDelivery(t, func(n int) (runs.DeliveryResult, error) {
		if n < 4 {
			return runs.DeliveryResult{}, errors.New("away")
		}
		return runs.DeliveryResult{Status: 204}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "status", out.Status, 204)
	wantEqual(t, "attempts", tries, 4)
	_, tries, err = runDelivery(t, func(int) (runs.DeliveryResult, error) {
		return runs.DeliveryResult{}, temporal.NewNonRetryableApplicationError("no", "webhook_refused", nil)
	})
	if err == nil || tries != 1 {
		t.Errorf("refused delivery: got %d attempts (%v), want 1", tries, err)
	}
}
