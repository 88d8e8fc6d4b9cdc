package inbox_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestPurgeRemovesThread: a purge removes a thread's pending approvals and its events, which
// contain the arguments. Those of other threads remain.
func TestPurgeRemovesThread(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	s, err := inbox.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		a := approval(n)
		run := stream.Run{Thread: stream.Thread{Tenant: tenant, ID: a.ThreadID}, ID: a.RunID}
		e := inbox.Event{Type: inbox.Opened, At: a.RequestedAt, Approval: *a}
		if err := l.AppendAudit(t.Context(), run, "evt_"+a.ThreadID, inbox.Entry{Tenant: tenant, Event: e}); err != nil {
			t.Fatal(err)
		}
		put(t, s, a, a.RequestedAt)
		if err := s.Record(t.Context(), tenant, "evt_"+a.ThreadID, &e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a repeated purge is no error
		if err := s.Purge(t.Context(), stream.Thread{Tenant: tenant, ID: "t1"}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, approval(1), began) // written by a worker that does not know about the purge
	p, err := watch(t, s).List(tenant, inbox.Filter{}, "", 10)
	if err != nil || len(p.Items) != 2 {
		t.Errorf("pending approvals = %s (%v), want 2", p.Items, err)
	}
	for id, want := range map[string]error{"evt_t0": nil, "evt_t1": inbox.ErrUnknownEvent, "evt_t2": nil} {
		if _, err := s.Event(t.Context(), tenant, id); !errors.Is(err, want) {
			t.Errorf("event %s: got %v, want %v", id, err, want)
		}
	}
}
