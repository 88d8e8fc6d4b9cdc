package announce

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/stream/streamtest"
)

// newKey returns a new private key in PEM.
func newKey(t *testing.T) string {
	t.Helper()
	key, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// untilKeys waits until the board has exactly the given keys, in any order.
func untilKeys(t *testing.T, b *Board, want ...assertion.PublicKey) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	byID := map[string]assertion.PublicKey{}
	for _, k := range want {
		byID[k.ID] = k
	}
	for {
		got := map[string]assertion.PublicKey{}
		for _, raw := range b.PublicKeys() {
			var k assertion.PublicKey
			if err := json.Unmarshal(raw, &k); err != nil {
				t.Fatal(err)
			}
			got[k.ID] = k
		}
		diff := cmp.Diff(byID, got)
		if diff == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("keys (-want +got):\n%s", diff)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestPublicKeys: the board has the keys of all workers, and follows a rotation. It keeps the keys of
// a worker that has stopped until its assertions have expired.
func TestPublicKeys(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	open := func(text string) (*assertion.Signer, *atomic.Value) {
		var current atomic.Value
		current.Store(text)
		signer, err := assertion.Open("https://agents.example", func() string { return current.Load().(string) }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return signer, &current
	}
	first, second := newKey(t), newKey(t)
	signer, text := open(first)
	other, _ := open(newKey(t))
	one := startSigning(t, l, "one", signer)
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	untilKeys(t, b, signer.Refresh(t.Context())...)
	two, three := startSigning(t, l, "two", other), startSigning(t, l, "three", nil)
	untilKeys(t, b, append(signer.Refresh(t.Context()), other.Refresh(t.Context())...)...)
	text.Store(first + second)
	rotated := append(signer.Refresh(t.Context()), other.Refresh(t.Context())...)
	if len(rotated) != 3 {
		t.Fatalf("keys = %v, want 3", rotated)
	}
	untilKeys(t, b, rotated...)
	for _, a := range []*Announcement{one, two, three} {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	until(t, b, "charge", "refund")
	untilKeys(t, b, rotated...)
	b.mu.Lock()
	b.now = func() time.Time { return time.Now().Add(keyRetention + time.Minute) }
	b.mu.Unlock()
	untilKeys(t, b)
}
