package e2e

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// All processes of a cluster are told to stop at the same time, with runs under way and viewers
// attached. Each ends cleanly, and with the next processes the runs go on for the same viewers.
func TestClusterTerminateAll(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := c.startAPI(t)
	worker := c.startWorker(t)
	var readers []*follower
	answer := say("This is it.")
	for range 6 {
		in := newInput(say("Slowly, please."))
		sharedModel.attempts(t, in.Messages[0].Content, pours(long(8000)), answers(answer))
		f := a.follow(t, in)
		f.contents(t, 2)
		readers = append(readers, f)
	}
	asked := time.Now()
	var ending errgroup.Group
	ending.Go(a.stop)
	ending.Go(worker.stop)
	ending.Go(c.servers[0].stop)
	if err := ending.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped within %s", time.Since(asked).Round(time.Millisecond))
	c.servers[0].start(t)
	a = c.startAPI(t)
	c.startWorker(t)
	for _, f := range readers {
		f.cut()
		f.p = a.endpoint
		f.finish(t)
		wantMessages(t, append(slices.Clone(f.in.Messages), says(answer)), show(t, f.in.Messages, f.events))
	}
}

// An api and a worker end cleanly although Temporal and the log do not answer.
func TestClusterTerminateWithoutServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := c.startAPI(t)
	worker := c.startWorker(t)
	in, answer := newInput(say("Slowly, please.")), say("This is it.")
	sharedModel.attempts(t, in.Messages[0].Content, pours(long(8000)), answers(answer))
	f := a.follow(t, in)
	f.contents(t, 2)
	c.servers[0].freeze(t)
	asked := time.Now()
	var ending errgroup.Group
	ending.Go(a.stop)
	ending.Go(worker.stop)
	err := ending.Wait()
	c.servers[0].thaw(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped within %s", time.Since(asked).Round(time.Millisecond))
	a = c.startAPI(t)
	c.startWorker(t)
	f.cut()
	f.p = a.endpoint
	f.finish(t)
	wantMessages(t, append(slices.Clone(in.Messages), says(answer)), show(t, in.Messages, f.events))
}
