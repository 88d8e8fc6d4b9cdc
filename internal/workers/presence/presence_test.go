package presence_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerServer); url != "" {
		if err := serveWorker(url); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

type failed struct {
	worker string
	token  []byte
}

// start starts the presence of a worker. fails receives the tasks that it fails; the sweep fails one
// with the token swept.
func start(t *testing.T, l *stream.Log, worker string, fails chan<- failed) *presence.Presence {
	t.Helper()
	p, err := presence.Start(t.Context(), l, worker, presence.NewTasks(), presence.Temporal{Fail: func(_ context.Context, worker string, task presence.Task) error {
		fails <- failed{worker, task.Token}
		return nil
	}, Sweep: func(_ context.Context, worker string) (int, error) {
		fails <- failed{worker, []byte("swept")}
		return 1, nil
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	return p
}

// TestDeadWorkersAttemptsAreFailed: a worker that lost its connection is dead to the other workers,
// in the same way as a killed one.
func TestDeadWorkersAttemptsAreFailed(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	fails := make(chan failed, 10)
	survivor := start(t, streamtest.OpenOn(t, s), "survivor", fails)
	if _, err := survivor.Begin(t.Context(), []byte("mine")); err != nil {
		t.Fatal(err)
	}
	victimLog := streamtest.OpenOn(t, s)
	victim := start(t, victimLog, "7@victim.example:a b", fails)
	over, err := victim.Begin(t.Context(), []byte("over"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := victim.Begin(t.Context(), []byte("token")); err != nil {
		t.Fatal(err)
	}
	over()
	end, err := victim.Begin(t.Context(), []byte("ended before the kill"))
	if err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := victim.Begin(t.Context(), []byte("last")); err != nil { // its record has no ended attempt
		t.Fatal(err)
	}
	victimLog.Conn().Close()

	seen := map[string]bool{}
	for len(seen) < 3 { // the sweep finds attempts without a record
		select {
		case f := <-fails:
			if f.worker != "7@victim.example:a b" || !slices.Contains([]string{"token", "last", "swept"}, string(f.token)) {
				t.Fatalf("failed activity = %s of %s, want one of the victim's three", f.token, f.worker)
			}
			seen[string(f.token)] = true
		case <-time.After(time.Minute):
			t.Fatalf("only %v were failed", seen)
		}
	}
}

// TestStoppedWorkerRemovesItsEntries: a worker that stops cleanly leaves no entry that another
// worker would take for a death.
func TestStoppedWorkerRemovesItsEntries(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	p, err := presence.Start(t.Context(), l, "one", presence.NewTasks(), silentTemporal, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Begin(t.Context(), []byte("token")); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	kv, err := l.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "workers"})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kv.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key := range keys.Keys() {
		t.Errorf("entry %s remains", key)
	}
}
