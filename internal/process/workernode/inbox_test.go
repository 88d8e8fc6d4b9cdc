package workernode

import (
	"context"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/runs"
)

// startingTemporal is a Temporal client that accepts workflows, and keeps the options of the last
// one.
type startingTemporal struct {
	client.Client
	options client.StartWorkflowOptions
}

func (s *startingTemporal) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	s.options = o
	return nil, nil
}

// TestDeliveriesHaveTheFairnessKeyOfTheirTenant: without it, the deliveries of a tenant wait for
// all earlier ones of another tenant.
func TestDeliveriesHaveTheFairnessKeyOfTheirTenant(t *testing.T) {
	t.Parallel()
	temporal := &startingTemporal{}
	err := startDelivery(temporal)(t.Context(), runs.Delivery{Tenant: "acme", Webhook: "hook", Event: "e"})
	if key := temporal.options.Priority.FairnessKey; err != nil || key != "acme" {
		t.Errorf("delivery: got %v and the fairness key %q, want acme", err, key)
	}
}
