package presence_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestStoppingWorkerFailsItsAttempts: a stopping worker fails its unfinished attempts itself, so
// that no other worker has to detect its death first.
func TestStoppingWorkerFailsItsAttempts(t *testing.T) {
	t.Parallel()
	var left, swept []string
	p, err := presence.Start(t.Context(), streamtest.Open(t), "one", presence.NewTasks(), presence.Temporal{Fail: func(_ context.Context, worker string, failed presence.Task) error {
		left = append(left, worker+" "+string(failed.Token))
		return nil
	}, Sweep: func(_ context.Context, worker string) (int, error) {
		swept = append(swept, worker)
		return 0, nil
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	end, err := p.Begin(t.Context(), []byte("ended"))
	if err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := p.Begin(t.Context(), []byte("cut")); err != nil {
		t.Fatal(err)
	}
	late, err := p.Begin(t.Context(), []byte("ended on the way out"))
	if err != nil {
		t.Fatal(err)
	}
	p.Leave()
	late() // whether Temporal received the report is unknown
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	if !slices.Equal(left, []string{"one cut", "one ended on the way out"}) {
		t.Errorf("failed attempts: got %q, want the unfinished ones and those whose report may be lost", left)
	}
	if !slices.Equal(swept, []string{"one"}) {
		t.Errorf("sweeps: got %q, want one for the worker itself, whose last polls may have received attempts", swept)
	}
}

// TestFailedSweepIsLeftToOthers: a worker whose own sweep fails keeps its entry, so that another
// worker sweeps for it.
func TestFailedSweepIsLeftToOthers(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	fails := make(chan failed, 10)
	start(t, streamtest.OpenOn(t, s), "survivor", fails)
	unavailable := silentTemporal
	unavailable.Sweep = func(context.Context, string) (int, error) { return 0, errors.New("visibility is unavailable") }
	p, err := presence.Start(t.Context(), streamtest.OpenOn(t, s), "leaving", presence.NewTasks(), unavailable, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err == nil {
		t.Error("Stop with a failed sweep: got no error, want one")
	}
	select {
	case got := <-fails:
		if got.worker != "leaving" || string(got.token) != "swept" {
			t.Errorf("got a failure of %s of worker %s, want a sweep for the worker that left", got.token, got.worker)
		}
	case <-time.After(10 * time.Second):
		t.Error("no other worker has swept for the one that left")
	}
}

// TestWorkerStopsWithoutItsServers: the log or Temporal may be unreachable when a worker is asked
// to stop. The worker stops within the time that its supervisor allows.
func TestWorkerStopsWithoutItsServers(t *testing.T) {
	t.Parallel()
	const limit = 8 * time.Second
	silent := func(ctx context.Context, _ string, _ presence.Task) error { <-ctx.Done(); return ctx.Err() }
	for name, servers := range map[string]struct {
		fail presence.Fail
		log  bool
	}{
		"the log is away":  {fail: func(context.Context, string, presence.Task) error { return nil }},
		"Temporal is away": {fail: silent, log: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streamtest.Server(t)
			p, err := presence.Start(t.Context(), streamtest.OpenOn(t, s), "one", presence.NewTasks(), presence.Temporal{Fail: servers.fail, Sweep: silentTemporal.Sweep}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Begin(t.Context(), []byte("cut")); err != nil {
				t.Fatal(err)
			}
			if !servers.log {
				s.Shutdown()
			}
			began := time.Now()
			if err := p.Stop(t.Context()); err == nil {
				t.Error("Stop with failures: got no error, want one")
			}
			if took := time.Since(began); took > limit {
				t.Errorf("Stop took %s, want at most %s", took, limit)
			}
		})
	}
}
