package cluster

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestTerminateAll: all processes of a cluster get SIGTERM at the same time, with active
// runs and viewers. Each exits cleanly. With the next processes the runs continue for the same
// viewers.
func TestTerminateAll(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	var readers []*kit.Follower
	answer := kit.Marked("This is it.")
	for range 6 {
		in := kit.NewInput(kit.Marked("Slowly, please."))
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(8000)), kit.FastAnswer(answer))
		f := a.Follow(t, in)
		f.UntilContent(t, 2)
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
		f.Endpoint = a.Endpoint
		f.Finish(t)
		kit.WantMessages(t, append(slices.Clone(f.In.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, f.In.Messages, f.Events))
	}
}

// TestTerminateWithoutServers: an API and a worker exit cleanly although Temporal and the
// log do not respond.
func TestTerminateWithoutServers(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.Marked("This is it.")
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(8000)), kit.FastAnswer(answer))
	f := a.Follow(t, in)
	f.UntilContent(t, 2)
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
	f.Endpoint = a.Endpoint
	f.Finish(t)
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, f.Events))
}
