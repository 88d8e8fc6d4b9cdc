package e2e

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// The log is full, by its own bound and by that of its server: runs wait, and go on when there is
// room. Nothing that was acknowledged is lost.
func TestLogFull(t *testing.T) {
	t.Parallel()
	const little = "1000KiB"
	t.Run("Stream", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		c.settings = append(c.settings, "PERDURE_STREAM_MAX_BYTES="+little)
		c.startLog(t, 1)
		fillAndWiden(t, c, func() { widen(t, c) })
	})
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		log := c.startLog(t, 1, "-max-store", "1000000")[0]
		fillAndWiden(t, c, func() {
			if err := log.stop(); err != nil {
				t.Error(err)
			}
			log.args = append(log.args, "-max-store", "1000000000")
			log.start(t)
		})
	})
}

// fillAndWiden fills the log under runs, and lets widen make room.
func fillAndWiden(t *testing.T, c *cluster, widen func()) {
	t.Helper()
	c.startTemporal(t)
	a, b := c.startAPI(t), c.startAPI(t)
	c.startWorker(t)
	runs := startSteady(t, 3, 3_000, a, b)
	goOn(t, runs, 1)
	ready(t, a, http.StatusOK)
	taken, waits := fill(t, a)
	ready(t, a, http.StatusServiceUnavailable)
	ready(t, b, http.StatusServiceUnavailable)
	resp, err := a.get(t.Context(), "/readyz", "")
	if r := refused(t, resp, err); r.Code != "log_full" {
		t.Errorf("/readyz says %+v", r)
	}
	widen()
	ready(t, a, http.StatusOK)
	ready(t, b, http.StatusOK)
	for _, f := range taken {
		f.finish(t)
	}
	same(t, "a run that the log had no room for", a.run(t, waits), b.run(t, waits))
	finishSteady(t, runs)
}

// fill starts runs with large inputs until one has no place.
func fill(t *testing.T, g *gateway) (taken []*follower, waits input) {
	t.Helper()
	for range 100 {
		prompt := say("Listen.")
		in := newInput(prompt + long(100_000))
		sharedModel.answerWith(t, prompt, say("I see."))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		f := g.quiet(ctx, in)
		t.Cleanup(f.cut)
		err := f.connect()
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusServiceUnavailable {
			return taken, in
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	t.Fatal("the log does not become full")
	return nil, input{}
}

// widen lifts the bound of the log.
func widen(t *testing.T, c *cluster) {
	t.Helper()
	js, err := jetstream.New(connect(t, c))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "PERDURE")
	if err != nil {
		t.Fatal(err)
	}
	wider := s.CachedInfo().Config
	wider.MaxBytes = -1
	if _, err := js.UpdateStream(t.Context(), wider); err != nil {
		t.Fatal(err)
	}
}
