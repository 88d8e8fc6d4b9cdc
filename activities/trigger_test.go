package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
)

// triggerFixture is the agent "a" with a trigger, on a real log.
type triggerFixture struct {
	*scheduleFixture

	trigger agents.Trigger
}

// Revision implements activities.Agents.
func (f *triggerFixture) Revision(context.Context, string, string, string) (*agents.Definition, error) {
	return &agents.Definition{Name: "a", Limits: agents.DefaultLimits(), Triggers: []agents.Trigger{f.trigger}}, nil
}

// TestTriggerWithoutThreadIsRecorded: an event that gives no ID for the thread starts no run, and the
// audit log says why.
func TestTriggerWithoutThreadIsRecorded(t *testing.T) {
	t.Parallel()
	f := &triggerFixture{setupSchedules(t), agents.Trigger{Event: "order.created", Thread: "${event.data.id}", Input: "check it"}}
	f.acts.Agents = f
	kept, err := events.Open(t.Context(), f.log)
	if err != nil {
		t.Fatal(err)
	}
	f.acts.Events = events.NewRouter(kept, nil)
	log, err := store.Open(t.Context(), f.log)
	if err != nil {
		t.Fatal(err)
	}
	if f.acts.Audit, err = store.NewWriter(log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.acts.Audit.Close)
	data := map[string]string{"null": `{"id":null}`, "text": `{"id":"null"}`, "empty": `{"id":""}`, "spaces": `{"id":"  "}`}
	sequence := uint64(0)
	for id, content := range data {
		e := &events.Event{Content: events.Content{ID: id, Source: "/shop", Type: "order.created", Time: time.Now(), Data: []byte(content)}, Tenant: "shop"}
		if _, err := kept.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		sequence++
		in := runs.TriggerInput{Tenant: "shop", Agent: "a", Revision: "v", Event: sequence, EventDigest: e.Digest()}
		if _, err := f.env.ExecuteActivity(f.acts.StartTriggeredRun, in); err == nil || len(f.started) != 0 {
			t.Errorf("%s: got %v and %d runs, want an error", id, err, len(f.started))
		}
	}
	page, err := log.Page(t.Context(), store.OfTenant("shop"), store.Filter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "entries", len(page.Entries), len(data))
	for _, raw := range page.Entries {
		e, err := audit.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		if e.Action != audit.FireTrigger || e.Outcome != audit.Denied || e.Code != "invalid_trigger" || !strings.HasPrefix(e.Details["reason"], "thread: ") {
			t.Errorf("entry = %+v, want the reason", e)
		}
	}
}
