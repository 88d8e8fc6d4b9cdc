package streams

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestTenantsHaveTurnsOfTheirOwn: streams of a tenant wait for its turns, and those of other tenants
// do not. A stream that gives up leaves no trace.
func TestTenantsHaveTurnsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns{queue: map[string]*queue{}}
		take := func(ctx context.Context, tenant string) func() {
			end, err := all.take(ctx, tenant)
			if err != nil {
				t.Error(err)
			}
			return end
		}
		var ends []func()
		for range maxTurns {
			ends = append(ends, take(t.Context(), "acme"))
		}
		later := make(chan func())
		go func() { later <- take(t.Context(), "acme") }()
		synctest.Wait()
		select {
		case <-later:
			t.Errorf("streams of a tenant with a turn: got %d, want %d", maxTurns+1, maxTurns)
		default:
		}
		take(t.Context(), "globex")()
		ended, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("gone")
		cancel(cause)
		if _, err := all.take(ended, "acme"); !errors.Is(err, cause) {
			t.Errorf("stream whose client is gone: got %v, want %v", err, cause)
		}
		ends[0]()
		ends[0] = <-later
		for _, end := range ends {
			end()
		}
		if len(all.queue) != 0 {
			t.Errorf("tenants after all streams: got %d, want 0", len(all.queue))
		}
	})
}
