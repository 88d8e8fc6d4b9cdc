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

// TestReadersOnOtherAPI: any API can read a run that another API has started, from the start or
// after any event, during the run and afterwards.
func TestReadersOnOtherAPI(t *testing.T) {
	t.Parallel()
	readElsewhere(t, kit.SetupCluster(t))
}

// readElsewhere checks that readers of other API processes get the events of a run.
func readElsewhere(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(3_000)
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
	here := a.Follow(t, in)
	here.UntilContent(t, 5)
	there := b.Follow(t, in)
	there.UntilContent(t, 5)
	later := b.FollowAfter(t, in, here.Events[:5])
	for _, f := range []*kit.Follower{here, there, later} {
		f.Finish(t)
	}
	all := here.Events
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, all))
	kit.WantSameEvents(t, "attached at the other api in mid-stream", all, there.Events)
	kit.WantSameEvents(t, "after event 4 in mid-stream", all, later.Events)
	for i := 0; i < len(all)-1; i += 10 {
		f := b.FollowAfter(t, in, all[:i+1])
		f.Finish(t)
		kit.WantSameEvents(t, fmt.Sprintf("after event %d of %d", i, len(all)), all, f.Events)
	}
	kit.WantSameEvents(t, "the same input again at the other api", all, b.Run(t, in))
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
}

// takeover bounds how long a run may pause when its worker dies. aim is the intended time.
const takeover, aim = 5 * time.Second, 3 * time.Second

// TestWorkerIsKilled: the worker with all model calls is killed, and then the worker that has
// taken over. Each time every run continues at once on the remaining worker, over the same
// connection.
func TestWorkerIsKilled(t *testing.T) {
	// Not parallel: the test measures time.
	killWorkers(t, kit.SetupCluster(t))
}

// killWorkers kills the workers of a run one after another.
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
			r.UntilMidStream(t)
		}
		idle := c.StartWorker(t) // all calls have begun on the other worker
		killed := time.Now()
		busy.Kill()
		for _, r := range runs {
			r.UntilNextAttempt(t)
		}
		took := time.Since(killed)
		t.Logf("kill %d: all %d runs continued after %s", kill+1, len(runs), took.Round(time.Millisecond))
		if took > takeover {
			t.Errorf("kill %d: all runs continued after %s, want at most %s", kill+1, took, aim)
		}
		busy = idle
	}
	for _, r := range runs {
		r.Finish(t, a.Endpoint)
		if r.Reader.Reconnects > 0 {
			t.Errorf("number of reconnects = %d, want none", r.Reader.Reconnects)
		}
	}
}

// TestAPIIsKilled: the API that serves the streams is killed. Its readers get exactly the rest
// from the other API.
func TestAPIIsKilled(t *testing.T) {
	t.Parallel()
	killAPI(t, kit.SetupCluster(t))
}

// killAPI kills the API process of a reader.
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
		p := pair{in: kit.NewInput(kit.Marked("Slowly, please.")), want: kit.LongText(3_000)}
		kit.SharedModel.AnswerInOrder(t, p.in.Messages[0].Content, kit.SlowAnswer(p.want))
		p.moving, p.steady = a.Follow(t, p.in), b.Follow(t, p.in)
		pairs = append(pairs, p)
	}
	for _, p := range pairs {
		p.moving.UntilContent(t, 3)
	}
	a.Kill()
	for _, p := range pairs {
		p.moving.Endpoint = b.Endpoint
		p.moving.Finish(t)
		p.steady.Finish(t)
		if p.moving.Reconnects == 0 {
			t.Error("number of reconnects = 0, want at least 1: the run had already ended")
		}
		kit.WantSameEvents(t, "the reader that moved", p.steady.Events, p.moving.Events)
		kit.WantMessages(t, append(slices.Clone(p.in.Messages), kit.AssistantMessage(p.want)), kit.ShownMessages(t, p.in.Messages, p.moving.Events))
	}
}

// TestRollingTerminate: SIGTERM ends a busy API and a busy worker soon and cleanly. Their work ends
// there or continues on other nodes, which also take new runs.
func TestRollingTerminate(t *testing.T) {
	// Not parallel: the test measures time. It usually takes a second or two.
	terminateNodes(t, kit.SetupCluster(t), takeover)
}

// terminateNodes terminates an API process and a worker.
func terminateNodes(t *testing.T, c *kit.Cluster, bound time.Duration) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	leaving := c.StartWorker(t)
	type expectedRun struct {
		reader *kit.Follower
		want   string
		calls  int
	}
	var runs []expectedRun
	for i := range 8 {
		in, r := kit.NewInput(kit.Marked("Slowly, please.")), expectedRun{want: kit.LongText(300), calls: 1}
		script := []kit.Fixture{kit.SlowAnswer(r.want)}
		if i%2 == 0 {
			r = expectedRun{want: kit.Marked("This is it."), calls: 2}
			script = []kit.Fixture{kit.SlowAnswer(kit.LongText(8000)), kit.FastAnswer(r.want)}
		}
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, script...)
		r.reader = a.Follow(t, in)
		runs = append(runs, r)
	}
	for _, r := range runs {
		r.reader.UntilContent(t, 2)
	}
	c.StartWorker(t)
	var ending, load errgroup.Group
	began := time.Now()
	ending.Go(a.Stop)
	ending.Go(leaving.Stop)
	for i := range 40 {
		load.Go(func() error { return b.RunEcho(t, i) })
	}
	if err := errors.Join(ending.Wait(), load.Wait()); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	t.Logf("stopped within %s", stopped.Sub(began).Round(time.Millisecond))
	for _, r := range runs {
		f := r.reader
		if err := f.Drain(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v, want an end between two frames", err)
		}
		if f.Endpoint = b.Endpoint; !f.Events[len(f.Events)-1].Terminal() {
			f.Finish(t)
		}
		kit.WantMessages(t, append(slices.Clone(f.In.Messages), kit.AssistantMessage(r.want)), kit.ShownMessages(t, f.In.Messages, f.Events))
		if n := len(kit.SharedModel.Calls(t, f.In.Messages[0].Content)); n != r.calls {
			t.Errorf("%d model calls, want %d", n, r.calls)
		}
	}
	took := time.Since(stopped)
	t.Logf("done elsewhere after %s", took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("another worker finished the open work after %s, want at most %s", took, bound)
	}
}

// TestCancelOnOtherAPI: a cancel at another API works as fast as one at the API of the run.
func TestCancelOnOtherAPI(t *testing.T) {
	// Not parallel: the test measures time.
	cancelElsewhere(t, kit.SetupCluster(t))
}

// cancelElsewhere cancels a run at another API process.
func cancelElsewhere(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	for range 4 { // on either worker
		in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(4000)
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
		f := a.Follow(t, in)
		f.UntilContent(t, 3)
		cancelled := time.Now()
		if got := b.Cancel(t, in); got != http.StatusAccepted {
			t.Fatalf("cancel: %d, want 202", got)
		}
		f.Finish(t)
		if took := time.Since(cancelled); took > kit.CancelTime {
			t.Errorf("time from the cancel to the end of the run = %s, want at most %s", took, kit.CancelTime)
		}
		if got := kit.Outcome(f.Events[len(f.Events)-1]); got != "cancelled" {
			t.Errorf("outcome = %q, want cancelled", got)
		}
		kit.WantPartial(t, in, kit.ShownMessages(t, in.Messages, f.Events), answer)
	}
}
