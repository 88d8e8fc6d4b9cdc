package workernode

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBurst: a thousand errors of a cause are two reports, with their number, and another cause has
// reports of its own.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // reports come from timers
		var got []string
		b := newBurst(func(err error, count int) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%d %s", count, causeOf(err)))
		})
		timeout, refused := errors.New("timeout"), errors.New("refused")
		for i := range 1000 {
			b.add(fmt.Errorf("event %d: %w: %w", i, errors.ErrUnsupported, timeout))
		}
		b.add(errors.Join(refused))
		want := func(what string, reports ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(got)
			if !slices.Equal(got, reports) {
				t.Errorf("reports %s = %q, want %q", what, got, reports)
			}
			got = nil
		}
		want("at once", "1 refused", "1 timeout")
		time.Sleep(burstInterval) //nolint:forbidigo // because the bubble has a clock of its own
		want("after an interval", "999 timeout")
		b.add(timeout)
		want("of the next interval")
		time.Sleep(burstInterval) //nolint:forbidigo // because the bubble has a clock of its own
		want("after it", "1 timeout")
		time.Sleep(burstInterval) //nolint:forbidigo // because the bubble has a clock of its own
		b.add(timeout)
		want("after an interval without errors", "1 timeout")
		b.add(timeout)
		b.close()
		want("at the end", "1 timeout")
	})
}

// TestBurstOfManyCauses: causes beyond the bound are one.
func TestBurstOfManyCauses(t *testing.T) {
	t.Parallel()
	reports := 0
	b := newBurst(func(error, int) { reports++ })
	for i := range 10 * maxCauses {
		b.add(fmt.Errorf("event %d", i))
	}
	if reports != maxCauses+1 {
		t.Errorf("reports = %d, want %d", reports, maxCauses+1)
	}
	b.close()
	if reports != maxCauses+2 {
		t.Errorf("reports at the end = %d, want one more", reports)
	}
}
