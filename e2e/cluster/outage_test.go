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

// outage is a cluster with open runs whose servers go down.
type outage struct {
	c    *kit.Cluster
	a, b *kit.API
	runs []steadyRun
	// pending is a run that a client requests while a server is down, and again when it is back.
	pending kit.Input
	want    string
}

// startOutage starts two APIs, two workers and some runs.
func startOutage(t *testing.T, c *kit.Cluster) *outage {
	t.Helper()
	o := &outage{c: c, a: c.StartAPI(t), b: c.StartAPI(t)}
	c.StartWorker(t)
	c.StartWorker(t)
	o.runs = startSteady(t, 6, 4_500, o.a, o.b)
	o.pending, o.want = kit.NewInput(kit.Marked("Are you there?")), kit.Marked("Yes.")
	kit.SharedModel.AnswerInOrder(t, o.pending.Messages[0].Content, kit.FastAnswer(o.want))
	return o
}

// checkDuring checks what clients see during an outage: nothing is acknowledged that has not
// happened. It returns when the outage has lasted for d.
func (o *outage) checkDuring(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, g := range []*kit.API{o.a, o.b} {
		kit.AwaitReadyStatus(t, g, http.StatusServiceUnavailable)
	}
	resp, err := o.a.Post(t.Context(), kit.AssistantPath, o.pending)
	if p := kit.ReadProblem(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: got %+v, Retry-After %q, want unavailable with a time", p, resp.Header.Get("Retry-After"))
	}
	<-ctx.Done()
}

// checkAfter checks what clients see after an outage: readiness, runs that continue, and the run
// that was requested meanwhile, once.
func (o *outage) checkAfter(t *testing.T) {
	t.Helper()
	back := time.Now()
	kit.AwaitReadyStatus(t, o.a, http.StatusOK)
	kit.AwaitReadyStatus(t, o.b, http.StatusOK)
	t.Logf("ready after %s", time.Since(back).Round(time.Millisecond))
	events := o.a.Run(t, o.pending)
	kit.WantMessages(t, append(slices.Clone(o.pending.Messages), kit.AssistantMessage(o.want)), kit.ShownMessages(t, o.pending.Messages, events))
	kit.WantSameEvents(t, "the run that was asked for meanwhile, at the other api", events, o.b.Run(t, o.pending))
	if n := len(kit.SharedModel.Calls(t, o.pending.Messages[0].Content)); n != 1 {
		t.Errorf("number of model calls of the run requested during the outage = %d, want 1", n)
	}
	untilContent(t, o.runs, 1)
	t.Logf("all runs continued after %s", time.Since(back).Round(time.Millisecond))
	finishSteady(t, o.runs)
}

// TestLogOutage: the log goes down and comes back, killed and frozen. Runs wait for it.
func TestLogOutage(t *testing.T) {
	t.Parallel()
	c := kit.NewCluster(t)
	c.StartTemporal(t)
	log := c.StartNATS(t, 1)[0]
	o := startOutage(t, c)
	leaving := c.StartAPI(t)
	untilContent(t, o.runs, 3)
	log.Kill()
	o.wantReadsRefused(t)
	if err := leaving.Stop(); err != nil { // it does not wait for the log
		t.Error(err)
	}
	o.checkDuring(t, kit.OutageLength)
	log.Start(t)
	o.checkAfter(t)
	wantTakeover(t, o)

	frozen := startSteady(t, 4, 3_000, o.a, o.b)
	untilContent(t, frozen, 3)
	log.Freeze(t)
	kit.AwaitReadyStatus(t, o.a, http.StatusServiceUnavailable)
	log.Thaw(t)
	kit.AwaitReadyStatus(t, o.a, http.StatusOK)
	finishSteady(t, frozen)
}

// wantReadsRefused checks that reads of the log are refused while it is down.
func (o *outage) wantReadsRefused(t *testing.T) {
	t.Helper()
	r := o.runs[0]
	for _, after := range []string{"", r.readers[0].Last()} {
		resp, err := o.a.Get(t.Context(), kit.EventsPath(r.in), after)
		if p := kit.ReadProblem(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
			t.Errorf("GET after %q: got %+v, want unavailable with Retry-After", after, p)
		}
	}
}

// wantTakeover checks that workers still detect each other's death.
func wantTakeover(t *testing.T, o *outage) {
	t.Helper()
	if err := errors.Join(o.c.Nodes[2].Stop(), o.c.Nodes[3].Stop()); err != nil {
		t.Fatal(err)
	}
	busy := o.c.StartWorker(t)
	r := kit.StartCrashedRun(t, o.a.Endpoint, 0)
	r.UntilMidStream(t)
	o.c.StartWorker(t)
	busy.Kill()
	killed := time.Now()
	r.UntilNextAttempt(t)
	if took := time.Since(killed); took > takeover {
		t.Errorf("run of a dead worker continued after %s, want at most %s", took, takeover)
	}
	_ = o.a.Cancel(t, r.In)
	r.Reader.Finish(t)
}

// TestTemporalOutage: Temporal goes down and comes back. Runs continue as far as they can and then
// wait.
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

// killTemporal kills Temporal during a run and starts it again.
func killTemporal(t *testing.T, c *kit.Cluster, start func(*kit.Cluster, *testing.T) *kit.Server) {
	t.Helper()
	temporal := start(c, t)
	c.StartNATS(t, 1)
	o := startOutage(t, c)
	ending, answer := kit.NewInput(kit.Marked("Briefly.")), kit.LongText(300) // ends while Temporal is down
	kit.SharedModel.AnswerInOrder(t, ending.Messages[0].Content, kit.SlowAnswer(answer))
	f := o.a.Follow(t, ending)
	f.UntilContent(t, 2)
	untilContent(t, o.runs, 1)
	temporal.Kill()
	o.checkDuring(t, kit.OutageLength)
	temporal.Start(t)
	o.checkAfter(t)
	f.Finish(t)
	kit.WantMessages(t, append(slices.Clone(ending.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, ending.Messages, f.Events))
	if n := len(kit.SharedModel.Calls(t, ending.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls of a run whose worker could not report, want 1", n)
	}
}
