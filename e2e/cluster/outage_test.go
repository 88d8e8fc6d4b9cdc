package cluster

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// outage is a cluster on which servers go away, with runs that are open meanwhile.
type outage struct {
	c    *kit.Cluster
	a, b *kit.Gateway
	runs []steady
	// begun is a run that a client asks for while a server is away, and again when it is back.
	begun kit.Input
	want  string
}

// startOutage starts two apis, two workers and some runs.
func startOutage(t *testing.T, c *kit.Cluster) *outage {
	t.Helper()
	o := &outage{c: c, a: c.StartAPI(t), b: c.StartAPI(t)}
	c.StartWorker(t)
	c.StartWorker(t)
	o.runs = startSteady(t, 6, 4_500, o.a, o.b)
	o.begun, o.want = kit.NewInput(kit.Say("Are you there?")), kit.Say("Yes.")
	kit.SharedModel.Attempts(t, o.begun.Messages[0].Content, kit.Answers(o.want))
	return o
}

// lasts is what clients see while a server is away: nothing is taken for done that is not. It
// returns when the outage has lasted as long as it has to.
func (o *outage) lasts(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, g := range []*kit.Gateway{o.a, o.b} {
		kit.Ready(t, g, http.StatusServiceUnavailable)
	}
	resp, err := o.a.Post(t.Context(), kit.Assistant, o.begun)
	if p := kit.Refused(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: %+v, Retry-After %q", p, resp.Header.Get("Retry-After"))
	}
	<-ctx.Done()
}

// ends is what clients see when the server is back: readiness, runs that go on, and the run that
// was asked for while it was away, once.
func (o *outage) ends(t *testing.T) {
	t.Helper()
	back := time.Now()
	kit.Ready(t, o.a, http.StatusOK)
	kit.Ready(t, o.b, http.StatusOK)
	t.Logf("ready after %s", time.Since(back).Round(time.Millisecond))
	events := o.a.Run(t, o.begun)
	kit.WantMessages(t, append(slices.Clone(o.begun.Messages), kit.Says(o.want)), kit.Show(t, o.begun.Messages, events))
	kit.Same(t, "the run that was asked for meanwhile, at the other api", events, o.b.Run(t, o.begun))
	if n := len(kit.SharedModel.Calls(t, o.begun.Messages[0].Content)); n != 1 {
		t.Errorf("the run that was asked for meanwhile called the model %d times", n)
	}
	goOn(t, o.runs, 1)
	t.Logf("all runs went on after %s", time.Since(back).Round(time.Millisecond))
	finishSteady(t, o.runs)
}

// The log goes away and comes back, killed and frozen: runs wait for it.
func TestLogOutage(t *testing.T) {
	t.Parallel()
	c := kit.NewCluster(t)
	c.StartTemporal(t)
	log := c.StartLog(t, 1)[0]
	o := startOutage(t, c)
	leaving := c.StartAPI(t)
	goOn(t, o.runs, 3)
	log.Kill()
	o.noReading(t)
	if err := leaving.Stop(); err != nil { // not held up by what it asks of the log
		t.Error(err)
	}
	o.lasts(t, kit.OutageLength)
	log.Start(t)
	o.ends(t)
	takesOver(t, o)

	frozen := startSteady(t, 4, 3_000, o.a, o.b)
	goOn(t, frozen, 3)
	log.Freeze(t)
	kit.Ready(t, o.a, http.StatusServiceUnavailable)
	log.Thaw(t)
	kit.Ready(t, o.a, http.StatusOK)
	finishSteady(t, frozen)
}

// noReading checks that what the log is asked for is refused while it is away.
func (o *outage) noReading(t *testing.T) {
	t.Helper()
	r := o.runs[0]
	for _, after := range []string{"", r.readers[0].Last()} {
		resp, err := o.a.Get(t.Context(), kit.EventsPath(r.in), after)
		if p := kit.Refused(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
			t.Errorf("GET behind %q: %+v", after, p)
		}
	}
}

// takesOver checks that workers still notice each other's death.
func takesOver(t *testing.T, o *outage) {
	t.Helper()
	if err := errors.Join(o.c.Nodes[2].Stop(), o.c.Nodes[3].Stop()); err != nil {
		t.Fatal(err)
	}
	busy := o.c.StartWorker(t)
	r := kit.StartCrashedRun(t, o.a.Endpoint, 0)
	r.MidStream(t)
	o.c.StartWorker(t)
	busy.Kill()
	killed := time.Now()
	r.NextAttempt(t)
	if took := time.Since(killed); took > takeover {
		t.Errorf("it took %s until the run of a dead worker went on", took)
	}
	_ = o.a.Cancel(t, r.In)
	r.Reader.Finish(t)
}

// Temporal goes away and comes back: what runs goes on as far as it can, and then waits.
func TestTemporalOutage(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		killTemporal(t, kit.NewCluster(t), (*kit.Cluster).StartTemporal)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		killTemporal(t, kit.NewCluster(t), (*kit.Cluster).StartTemporalOnPostgres)
	})
}

func killTemporal(t *testing.T, c *kit.Cluster, start func(*kit.Cluster, *testing.T) *kit.Server) {
	t.Helper()
	temporal := start(c, t)
	c.StartLog(t, 1)
	o := startOutage(t, c)
	ending, answer := kit.NewInput(kit.Say("Briefly.")), kit.Long(300) // ends while nobody can be told
	kit.SharedModel.Attempts(t, ending.Messages[0].Content, kit.Pours(answer))
	f := o.a.Follow(t, ending)
	f.Contents(t, 2)
	goOn(t, o.runs, 1)
	temporal.Kill()
	o.lasts(t, kit.OutageLength)
	temporal.Start(t)
	o.ends(t)
	f.Finish(t)
	kit.WantMessages(t, append(slices.Clone(ending.Messages), kit.Says(answer)), kit.Show(t, ending.Messages, f.Events))
	if n := len(kit.SharedModel.Calls(t, ending.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls of a run whose worker could not report, want 1", n)
	}
}
