package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// A cluster may give a follower's new consumer to a node that has just died, and then all that is
// asked for this consumer is in vain until the node is back. Readers do not wait for that: they go
// on with another one, and with the very next record.
func TestReadersOutliveAConsumerOnADeadNode(t *testing.T) {
	t.Parallel()
	ctx, n := testContext(t), &network{server: streamtest.Server(t)}
	l := n.dial(t, ctx)
	tail := streamtest.Follow(t, l).Tail(run)
	defer tail.Close()
	w := &writer{log: streamtest.OpenOn(t, n.server)}
	w.write(t, ctx, 1)
	wantRecords(t, ctx, "at first", tail, w.written)
	n.giveToTheDead(t, 2)
	w.written = nil
	w.write(t, ctx, 2)
	wantRecords(t, ctx, "then", tail, w.written)
}

// A follower stops at once, also while it has no consumer and gets none.
func TestFollowerStopsWhileTheLogIsSilent(t *testing.T) {
	t.Parallel()
	ctx, n := testContext(t), &network{server: streamtest.Server(t)}
	follower := must[*stream.Follower](t)(n.dial(t, ctx).Follow(ctx))
	tail := follower.Tail(run)
	defer tail.Close()
	<-n.giveToTheDead(t, 1000)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		follower.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Second):
		t.Fatal("it does not stop")
	}
	if _, err := tail.Next(ctx, time.Minute); !errors.Is(err, stream.ErrInterrupted) {
		t.Errorf("a reader ends with %v, want ErrInterrupted", err)
	}
}
