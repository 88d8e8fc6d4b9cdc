package activities_test

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
)

// TestTriggerAwaitsQueue: a run whose thread has a full queue begins later, and the audit log has it
// once. It does not begin when the event is not kept any more.
func TestTriggerAwaitsQueue(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	kept, err := events.Open(t.Context(), fixture.log)
	if err != nil {
		t.Fatal(err)
	}
	event := &events.Event{Tenant: "shop", Content: events.Content{ID: "e1", Source: "/shop", Type: "order.created"}}
	if _, err := kept.Append(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	log, err := store.Open(t.Context(), fixture.log)
	if err != nil {
		t.Fatal(err)
	}
	if fixture.acts.Audit, err = store.NewWriter(log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fixture.acts.Audit.Close)
	fixture.acts.Events = events.NewRouter(kept, nil)
	fixture.triggered = &agents.Definition{Name: "a", Limits: agents.DefaultLimits(), Triggers: []agents.Trigger{{Event: "order.created", Thread: "orders", Input: "An order"}}}
	fixture.occupied = true
	in := runs.TriggerInput{Tenant: "shop", Agent: "a", Revision: "v", Event: 1, EventDigest: event.Digest()}
	start := func() (out runs.FiredRun, err error) {
		value, err := fixture.env.ExecuteActivity(runs.ActivityTriggerRun, in)
		if err == nil {
			err = value.Get(&out)
		}
		return out, err
	}

	fixture.submit = func(runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, temporal.NewApplicationError("full", runs.ErrorQueueFull)
	}
	_, err = start()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.NonRetryable() || app.Type() != runs.ErrorQueueFull {
		t.Errorf("full queue: got %v, want an error that is retried", err)
	}
	fixture.submit = func(runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{Attached: true}, nil }
	first, err := start()
	if err != nil || first.Refused != "" || first.Run.Thread != "orders" {
		t.Errorf("queue with room: got %+v (%v), want a run in the thread orders", first, err)
	}
	// The same event again after it is forgotten has another sequence, and starts another run.
	event.ID = "e2"
	if _, err := kept.Append(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	in.Event = 2
	if next, err := start(); err != nil || next.Run.ID == first.Run.ID {
		t.Errorf("event that has returned: got the run %s (%v), want another one than %s", next.Run.ID, err, first.Run.ID)
	}
	in.Event = 3
	_, err = start()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !app.NonRetryable() {
		t.Errorf("event that is not kept: got %v, want an error that is not retried", err)
	}
	page, err := log.Page(t.Context(), store.OfTenant("shop"), store.Filter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, raw := range page.Entries {
		e, err := audit.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, string(e.Outcome)+e.Code)
	}
	slices.Sort(outcomes)
	wantEqual(t, "outcomes in the audit log", outcomes, []string{"accepted", "accepted", "deniedevent_gone"})
}
