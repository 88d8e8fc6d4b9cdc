package workernode

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
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

// TestEventAfterPublication: an event that is sent right after the publication of its trigger starts a run,
// also at a worker that has not received the publication yet.
func TestEventAfterPublication(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	worker, err := catalog.Open(t.Context(), streamtest.OpenOn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := catalog.Open(t.Context(), streamtest.OpenOn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	watches, err := worker.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watches.Stop)
	for i := range 100 {
		name := fmt.Sprint("paid", i)
		d := &agents.Definition{Name: fmt.Sprint("agent", i), Model: "openai/m", Triggers: []agents.Trigger{{Event: name, Input: "Handle it."}}}
		if _, err := publisher.Publish(t.Context(), d, false); err != nil {
			t.Fatal(err)
		}
		_, started, err := trigger(&startingTemporal{}, worker)(t.Context(), &events.Event{Tenant: "t", Content: events.Content{Type: name}}, 1)
		if started != 1 || err != nil {
			t.Fatalf("event %d has started %d runs, %v, want one", i, started, err)
		}
	}
}
