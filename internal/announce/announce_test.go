package announce

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until waits until the board misses exactly these.
func until(t *testing.T, b *Board, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got := b.Missing([]string{"charge", "refund", "client:*", "mcp:shop/buy", "see_*"})
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("missing %q, want %q", got, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func start(t *testing.T, l *stream.Log, worker string, tools ...string) *Announcement {
	t.Helper()
	a, err := Start(t.Context(), l, worker, tools)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	one := start(t, l, "host.one-1-X", "charge")
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if got := b.Missing([]string{"charge", "refund"}); !slices.Equal(got, []string{"refund"}) {
		t.Errorf("at once, %q are missing", got)
	}
	two := start(t, l, "host.two-2-Y", "charge", "refund")
	until(t, b)
	stop := func(a *Announcement) {
		t.Helper()
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	stop(two)
	until(t, b, "refund")
	stop(one)
	until(t, b, "charge", "refund")
}

// A worker that died takes nothing back.
func TestWhatADeadWorkerSaidEnds(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	a := start(t, l, "w", "charge")
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	until(t, b, "refund")
	a.stop()
	a.wait.Wait()
	b.mu.Lock()
	b.now = func() time.Time { return time.Now().Add(lasting) }
	b.mu.Unlock()
	until(t, b, "charge", "refund")
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Watch(ctx, streamtest.Open(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
