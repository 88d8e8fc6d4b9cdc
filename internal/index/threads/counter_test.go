package threads_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestCounterFollowsStatuses: a counter has the active and the waiting threads of each tenant, from
// before and after its start, and drops those that end or are removed.
func TestCounterFollowsStatuses(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	for n := range 9 { // three of each: idle, running, waiting
		put(t, l, tenantThreads, entry(n))
	}
	put(t, l, "other", entry(1))
	counter, err := threads.Count(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(counter.Stop)
	want := func(tenant string, active, waiting int) {
		t.Helper()
		for late := time.After(10 * time.Second); ; {
			changed := counter.Changed()
			a, w := counter.Counts(tenant)
			if a == active && w == waiting {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s: got %d active and %d waiting, want %d and %d", tenant, a, w, active, waiting)
			}
		}
	}
	want(tenantThreads, 3, 3)
	want("other", 1, 0)
	want("unknown", 0, 0)
	ended, paused, removed := entry(1), entry(2), entry(4)
	ended.Status, paused.Status, removed.Purged = stream.StatusIdle, stream.StatusPaused, true
	for _, e := range []stream.IndexEntry{ended, paused, removed} {
		put(t, l, tenantThreads, e)
	}
	want(tenantThreads, 2, 2)
	put(t, l, "other", ended)
	want("other", 0, 0)
}
