package cluster

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// All processes of a cluster are told to stop at the same time, with runs under way and viewers
// attached. Each ends cleanly, and with the next processes the runs go on for the same viewers.
func TestClusterTerminateAll(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	var readers []*kit.Follower
	answer := kit.Say("This is it.")
	for range 6 {
		in := kit.NewInput(kit.Say("Slowly, please."))
		kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(kit.Long(8000)), kit.Answers(answer))
		f := a.Follow(t, in)
		f.Contents(t, 2)
		readers = append(readers, f)
	}
	asked := time.Now()
	var ending errgroup.Group
	ending.Go(a.Stop)
	ending.Go(worker.Stop)
	ending.Go(c.Servers[0].Stop)
	if err := ending.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped within %s", time.Since(asked).Round(time.Millisecond))
	c.Servers[0].Start(t)
	a = c.StartAPI(t)
	c.StartWorker(t)
	for _, f := range readers {
		f.Cut()
		f.P = a.Endpoint
		f.Finish(t)
		kit.WantMessages(t, append(slices.Clone(f.In.Messages), kit.Says(answer)), kit.Show(t, f.In.Messages, f.Events))
	}
}

// An api and a worker end cleanly although Temporal and the log do not answer.
func TestClusterTerminateWithoutServers(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	in, answer := kit.NewInput(kit.Say("Slowly, please.")), kit.Say("This is it.")
	kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(kit.Long(8000)), kit.Answers(answer))
	f := a.Follow(t, in)
	f.Contents(t, 2)
	c.Servers[0].Freeze(t)
	asked := time.Now()
	var ending errgroup.Group
	ending.Go(a.Stop)
	ending.Go(worker.Stop)
	err := ending.Wait()
	c.Servers[0].Thaw(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped within %s", time.Since(asked).Round(time.Millisecond))
	a = c.StartAPI(t)
	c.StartWorker(t)
	f.Cut()
	f.P = a.Endpoint
	f.Finish(t)
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.Says(answer)), kit.Show(t, in.Messages, f.Events))
}
