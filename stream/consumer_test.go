package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestReadersSurviveConsumerOnDeadNode: a cluster may place a follower's new consumer on a node
// that has just died. Requests for this consumer fail until the node is back. Readers do not wait
// for that: they continue with another consumer, at the next record.
func TestReadersSurviveConsumerOnDeadNode(t *testing.T) {
	t.Parallel()
	ctx, n := testContext(t), &flakyNetwork{server: streamtest.Server(t)}
	l := n.dial(t, ctx)
	tail := streamtest.Follow(t, l).Tail(run)
	defer tail.Close()
	w := &writer{log: streamtest.OpenOn(t, n.server)}
	w.write(t, ctx, 1)
	wantRecords(t, ctx, "at first", tail, w.written)
	n.routeToDeadNode(t, 2)
	w.written = nil
	w.write(t, ctx, 2)
	wantRecords(t, ctx, "then", tail, w.written)
}

// TestFollowerStopsWithoutRecords: a follower stops at once, also while it has no consumer and
// cannot get one.
func TestFollowerStopsWithoutRecords(t *testing.T) {
	t.Parallel()
	ctx, n := testContext(t), &flakyNetwork{server: streamtest.Server(t)}
	follower := must[*stream.Follower](t)(n.dial(t, ctx).Follow(ctx))
	tail := follower.Tail(run)
	defer tail.Close()
	<-n.routeToDeadNode(t, 1000)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		follower.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Second):
		t.Fatal("Stop did not return within a second")
	}
	if _, err := tail.Next(ctx, time.Minute); !errors.Is(err, stream.ErrInterrupted) {
		t.Errorf("reader: got %v, want ErrInterrupted", err)
	}
}
