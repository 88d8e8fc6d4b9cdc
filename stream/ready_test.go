package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestFullLogIsNotReady: a log that reaches its own bound or the server's is not ready. It is
// ready again when there is room.
func TestFullLogIsNotReady(t *testing.T) {
	t.Parallel()
	const bound = 1 << 20
	for name, store := range map[string]struct{ stream, server int64 }{"stream": {stream: bound}, "server": {server: bound}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			s := streamtest.ServerWith(t, func(o *server.Options) { o.JetStreamMaxStore = store.server })
			nc := streamtest.Connect(t, s)
			l, err := stream.Open(ctx, nc, stream.Options{MaxBytes: store.stream})
			if err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Ready(ctx); err != nil {
				t.Fatalf("an empty log: got %v", err)
			}
			for err == nil { // until the log is full
				_, err = js.Publish(ctx, "perdure.filler", make([]byte, bound/10))
			}
			if err := l.Ready(ctx); !errors.Is(err, stream.ErrFull) {
				t.Errorf("a full log: got %v, want ErrFull", err)
			}
			log, err := js.Stream(ctx, "PERDURE")
			if err == nil {
				err = log.Purge(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Ready(ctx); err != nil {
				t.Errorf("a log with room again: got %v", err)
			}
			s.Shutdown()
			s.WaitForShutdown()
			ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := l.Ready(ctx); err == nil || errors.Is(err, stream.ErrFull) {
				t.Errorf("a log that is away: got %v, want another error than ErrFull", err)
			}
		})
	}
}
