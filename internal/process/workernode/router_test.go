package workernode

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// refusingTemporal is a Temporal client that fails all updates.
type refusingTemporal struct {
	client.Client
	err error
}

func (r *refusingTemporal) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, r.err
}

// TestEventIsAttemptedAgain: an event does not pass a wait whose workflow has failed the decision: the
// wait may be open in the next execution. Only a thread without a workflow has no open waits.
func TestEventIsAttemptedAgain(t *testing.T) {
	t.Parallel()
	for want, failure := range map[bool]error{
		true:  temporal.NewNonRetryableApplicationError("refused", "UnprocessedUpdate", nil),
		false: serviceerror.NewNotFound("no workflow"),
	} {
		d := &dispatch.Dispatcher{Temporal: &refusingTemporal{err: failure}}
		_, isActive, err := decide(d)(t.Context(), stream.Thread{Tenant: "t", ID: "t"}, runs.Decision{CallID: "c"})
		if isActive || errors.Is(err, failure) != want {
			t.Errorf("decision after %v = %v, %v, want an error = %v", failure, isActive, err, want)
		}
	}
}
