package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// A run that one api started can be read at any other, from the start or behind any event, while it
// goes on and afterwards.
func TestClusterReadElsewhere(t *testing.T) {
	t.Parallel()
	readElsewhere(t, kit.SetupCluster(t))
}

func readElsewhere(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	in, answer := kit.NewInput(kit.Say("Slowly, please.")), kit.Long(900)
	kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(answer))
	here := a.Follow(t, in)
	here.Contents(t, 5)
	there := b.Follow(t, in)
	there.Contents(t, 5)
	behind := b.Behind(t, in, here.Events[:5])
	for _, f := range []*kit.Follower{here, there, behind} {
		f.Finish(t)
	}
	all := here.Events
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.Says(answer)), kit.Show(t, in.Messages, all))
	kit.Same(t, "attached at the other api in mid-stream", all, there.Events)
	kit.Same(t, "behind event 4 in mid-stream", all, behind.Events)
	for i := 0; i < len(all)-1; i += 10 {
		f := b.Behind(t, in, all[:i+1])
		f.Finish(t)
		kit.Same(t, fmt.Sprintf("behind event %d of %d", i, len(all)), all, f.Events)
	}
	kit.Same(t, "the same input again at the other api", all, b.Run(t, in))
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
}

// takeover bounds how long a run may stand still when its worker dies; aim is what is meant to
// hold.
const takeover, aim = 5 * time.Second, 3 * time.Second

// The worker dies that makes all model calls, and then the one that took over. Each time every run
// goes on at once on the one that is left, over the same connection.
func TestClusterWorkerKill(t *testing.T) {
	// Not in parallel: it measures.
	killWorkers(t, kit.SetupCluster(t))
}

func killWorkers(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a := c.StartAPI(t)
	busy := c.StartWorker(t)
	var runs []*kit.CrashedRun
	for i := range 10 {
		runs = append(runs, kit.StartCrashedRun(t, a.Endpoint, i))
	}
	for kill := range 2 {
		for _, r := range runs {
			r.MidStream(t)
		}
		idle := c.StartWorker(t) // all calls have begun: none is its own
		killed := time.Now()
		busy.Kill()
		for _, r := range runs {
			r.NextAttempt(t)
		}
		took := time.Since(killed)
		t.Logf("kill %d: all of %d runs went on after %s", kill+1, len(runs), took.Round(time.Millisecond))
		if took > takeover {
			t.Errorf("kill %d: it took %s until all runs went on, the aim is %s", kill+1, took, aim)
		}
		busy = idle
	}
	for _, r := range runs {
		r.Finish(t, a.Endpoint)
		if r.Reader.Comebacks > 0 {
			t.Errorf("a stream broke off %d times", r.Reader.Comebacks)
		}
	}
}

// The api dies that serves the streams. Their readers get exactly the rest from the other one.
func TestClusterAPIKill(t *testing.T) {
	t.Parallel()
	killAPI(t, kit.SetupCluster(t))
}

func killAPI(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	type pair struct {
		in             kit.Input
		want           string
		steady, moving *kit.Follower
	}
	var pairs []pair
	for range 8 {
		p := pair{in: kit.NewInput(kit.Say("Slowly, please.")), want: kit.Long(900)}
		kit.SharedModel.Attempts(t, p.in.Messages[0].Content, kit.Pours(p.want))
		p.moving, p.steady = a.Follow(t, p.in), b.Follow(t, p.in)
		pairs = append(pairs, p)
	}
	for _, p := range pairs {
		p.moving.Contents(t, 3)
	}
	a.Kill()
	for _, p := range pairs {
		p.moving.P = b.Endpoint
		p.moving.Finish(t)
		p.steady.Finish(t)
		if p.moving.Comebacks == 0 {
			t.Error("no reader had to come back: the run was over")
		}
		kit.Same(t, "the reader that moved", p.steady.Events, p.moving.Events)
		kit.WantMessages(t, append(slices.Clone(p.in.Messages), kit.Says(p.want)), kit.Show(t, p.in.Messages, p.moving.Events))
	}
}

// SIGTERM ends an api and a worker that are busy soon and cleanly. What can end meanwhile ends
// where it is, what cannot goes on elsewhere, and new runs go where it is not.
func TestClusterTerminate(t *testing.T) {
	// Not in parallel: it measures. It takes a second or two. Five were seen once, as if a workflow
	// task had been lost with the worker, which comes again when its time is over.
	terminateNodes(t, kit.SetupCluster(t), 2*takeover)
}

func terminateNodes(t *testing.T, c *kit.Cluster, bound time.Duration) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	leaving := c.StartWorker(t)
	type told struct {
		reader *kit.Follower
		want   string
		calls  int
	}
	var runs []told
	for i := range 8 {
		in, r := kit.NewInput(kit.Say("Slowly, please.")), told{want: kit.Long(300), calls: 1}
		script := []kit.Fixture{kit.Pours(r.want)}
		if i%2 == 0 {
			r = told{want: kit.Say("This is it."), calls: 2}
			script = []kit.Fixture{kit.Pours(kit.Long(8000)), kit.Answers(r.want)}
		}
		kit.SharedModel.Attempts(t, in.Messages[0].Content, script...)
		r.reader = a.Follow(t, in)
		runs = append(runs, r)
	}
	for _, r := range runs {
		r.reader.Contents(t, 2)
	}
	c.StartWorker(t)
	var ending, load errgroup.Group
	asked := time.Now()
	ending.Go(a.Stop)
	ending.Go(leaving.Stop)
	for i := range 40 {
		load.Go(func() error { return b.Echo(t, i) })
	}
	if err := errors.Join(ending.Wait(), load.Wait()); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	t.Logf("stopped within %s", stopped.Sub(asked).Round(time.Millisecond))
	for _, r := range runs {
		f := r.reader
		if err := f.Drain(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v, want an end between two frames", err)
		}
		if f.P = b.Endpoint; !f.Events[len(f.Events)-1].Terminal() {
			f.Finish(t)
		}
		kit.WantMessages(t, append(slices.Clone(f.In.Messages), kit.Says(r.want)), kit.Show(t, f.In.Messages, f.Events))
		if n := len(kit.SharedModel.Calls(t, f.In.Messages[0].Content)); n != r.calls {
			t.Errorf("%d model calls, want %d", n, r.calls)
		}
	}
	took := time.Since(stopped)
	t.Logf("done elsewhere after %s", took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("it took %s until what was left had been done elsewhere", took)
	}
}

// A cancel that another api takes is there as soon as one at the run's own.
func TestClusterCancelElsewhere(t *testing.T) {
	// Not in parallel: it measures.
	cancelElsewhere(t, kit.SetupCluster(t))
}

func cancelElsewhere(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	for range 4 { // whichever worker has it
		in, answer := kit.NewInput(kit.Say("Slowly, please.")), kit.Long(4000)
		kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(answer))
		f := a.Follow(t, in)
		f.Contents(t, 3)
		asked := time.Now()
		if got := b.Cancel(t, in); got != http.StatusAccepted {
			t.Fatalf("cancel: %d, want 202", got)
		}
		f.Finish(t)
		if took := time.Since(asked); took > time.Second {
			t.Errorf("the run ended %s after the cancel", took)
		}
		if got := kit.Outcome(f.Events[len(f.Events)-1]); got != "cancelled" {
			t.Errorf("it ended with the outcome %q", got)
		}
		kit.WantPartial(t, in, kit.Show(t, in.Messages, f.Events), answer)
	}
}
