package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// outage is a cluster on which servers go away, with runs that are open meanwhile.
type outage struct {
	c    *cluster
	a, b *gateway
	runs []steady
	// begun is a run that a client asks for while a server is away, and again when it is back.
	begun input
	want  string
}

// startOutage starts two apis, two workers and some runs.
func startOutage(t *testing.T, c *cluster) *outage {
	t.Helper()
	o := &outage{c: c, a: c.startAPI(t), b: c.startAPI(t)}
	c.startWorker(t)
	c.startWorker(t)
	o.runs = startSteady(t, 6, 4_500, o.a, o.b)
	o.begun, o.want = newInput(say("Are you there?")), say("Yes.")
	sharedModel.attempts(t, o.begun.Messages[0].Content, answers(o.want))
	return o
}

// lasts is what clients see while a server is away: nothing is taken for done that is not. It
// returns when the outage has lasted as long as it has to.
func (o *outage) lasts(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, g := range []*gateway{o.a, o.b} {
		ready(t, g, http.StatusServiceUnavailable)
	}
	resp, err := o.a.post(t.Context(), assistant, o.begun)
	if p := refused(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: %+v, Retry-After %q", p, resp.Header.Get("Retry-After"))
	}
	<-ctx.Done()
}

// ends is what clients see when the server is back: readiness, runs that go on, and the run that
// was asked for while it was away, once.
func (o *outage) ends(t *testing.T) {
	t.Helper()
	back := time.Now()
	ready(t, o.a, http.StatusOK)
	ready(t, o.b, http.StatusOK)
	t.Logf("ready after %s", time.Since(back).Round(time.Millisecond))
	events := o.a.run(t, o.begun)
	wantMessages(t, append(slices.Clone(o.begun.Messages), says(o.want)), show(t, o.begun.Messages, events))
	same(t, "the run that was asked for meanwhile, at the other api", events, o.b.run(t, o.begun))
	if n := len(sharedModel.calls(t, o.begun.Messages[0].Content)); n != 1 {
		t.Errorf("the run that was asked for meanwhile called the model %d times", n)
	}
	goOn(t, o.runs, 1)
	t.Logf("all runs went on after %s", time.Since(back).Round(time.Millisecond))
	finishSteady(t, o.runs)
}

// ready waits until an api says what it has to say about its readiness.
func ready(t *testing.T, g *gateway, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		resp, err := g.get(ctx, "/readyz", "")
		if err != nil {
			t.Fatalf("/readyz does not become %d: %v", want, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == want {
			return
		}
		<-time.After(20 * time.Millisecond) // between two looks
	}
}

// The log goes away and comes back, killed and frozen: runs wait for it.
func TestLogOutage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.startTemporal(t)
	log := c.startLog(t, 1)[0]
	o := startOutage(t, c)
	leaving := c.startAPI(t)
	goOn(t, o.runs, 3)
	log.kill()
	o.noReading(t)
	if err := leaving.stop(); err != nil { // not held up by what it asks of the log
		t.Error(err)
	}
	o.lasts(t, outageLength)
	log.start(t)
	o.ends(t)
	takesOver(t, o)

	frozen := startSteady(t, 4, 3_000, o.a, o.b)
	goOn(t, frozen, 3)
	log.freeze(t)
	ready(t, o.a, http.StatusServiceUnavailable)
	log.thaw(t)
	ready(t, o.a, http.StatusOK)
	finishSteady(t, frozen)
}

// noReading checks that what the log is asked for is refused while it is away.
func (o *outage) noReading(t *testing.T) {
	t.Helper()
	r := o.runs[0]
	for _, after := range []string{"", r.readers[0].last()} {
		resp, err := o.a.get(t.Context(), eventsPath(r.in), after)
		if p := refused(t, resp, err); p.Status != http.StatusServiceUnavailable || p.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
			t.Errorf("GET behind %q: %+v", after, p)
		}
	}
}

// takesOver checks that workers still notice each other's death.
func takesOver(t *testing.T, o *outage) {
	t.Helper()
	if err := errors.Join(o.c.nodes[2].stop(), o.c.nodes[3].stop()); err != nil {
		t.Fatal(err)
	}
	busy := o.c.startWorker(t)
	r := startCrashed(t, o.a.endpoint, 0)
	r.midStream(t)
	o.c.startWorker(t)
	busy.kill()
	killed := time.Now()
	r.nextAttempt(t)
	if took := time.Since(killed); took > takeover {
		t.Errorf("it took %s until the run of a dead worker went on", took)
	}
	_ = o.a.cancel(t, r.in)
	r.reader.finish(t)
}

// Temporal goes away and comes back: what runs goes on as far as it can, and then waits.
func TestTemporalOutage(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		killTemporal(t, newCluster(t), (*cluster).startTemporal)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		killTemporal(t, newCluster(t), (*cluster).startTemporalOnPostgres)
	})
}

func killTemporal(t *testing.T, c *cluster, start func(*cluster, *testing.T) *server) {
	t.Helper()
	temporal := start(c, t)
	c.startLog(t, 1)
	o := startOutage(t, c)
	ending, answer := newInput(say("Briefly.")), long(300) // ends while nobody can be told
	sharedModel.attempts(t, ending.Messages[0].Content, pours(answer))
	f := o.a.follow(t, ending)
	f.contents(t, 2)
	goOn(t, o.runs, 1)
	temporal.kill()
	o.lasts(t, outageLength)
	temporal.start(t)
	o.ends(t)
	f.finish(t)
	wantMessages(t, append(slices.Clone(ending.Messages), says(answer)), show(t, ending.Messages, f.events))
	if n := len(sharedModel.calls(t, ending.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls of a run whose worker could not report, want 1", n)
	}
}
