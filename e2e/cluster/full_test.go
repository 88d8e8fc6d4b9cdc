package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/e2e/kit"
)

// The log is full, by its own bound and by that of its server: runs wait, and go on when there is
// room. Nothing that was acknowledged is lost.
func TestLogFull(t *testing.T) {
	t.Parallel()
	const little = "1000KiB"
	t.Run("Stream", func(t *testing.T) {
		t.Parallel()
		c := kit.NewCluster(t)
		c.Settings = append(c.Settings, "PERDURE_STREAM_MAX_BYTES="+little)
		c.StartLog(t, 1)
		fillAndWiden(t, c, func() { widen(t, c) })
	})
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		c := kit.NewCluster(t)
		log := c.StartLog(t, 1, "-max-store", "1000000")[0]
		fillAndWiden(t, c, func() {
			if err := log.Stop(); err != nil {
				t.Error(err)
			}
			log.Args = append(log.Args, "-max-store", "1000000000")
			log.Start(t)
		})
	})
}

// fillAndWiden fills the log under runs, and lets widen make room.
func fillAndWiden(t *testing.T, c *kit.Cluster, widen func()) {
	t.Helper()
	c.StartTemporal(t)
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	runs := startSteady(t, 3, 3_000, a, b)
	goOn(t, runs, 1)
	kit.Ready(t, a, http.StatusOK)
	taken, waits := fill(t, a)
	kit.Ready(t, a, http.StatusServiceUnavailable)
	kit.Ready(t, b, http.StatusServiceUnavailable)
	resp, err := a.Get(t.Context(), "/readyz", "")
	if r := kit.Refused(t, resp, err); r.Code != "log_full" {
		t.Errorf("/readyz says %+v", r)
	}
	widen()
	kit.Ready(t, a, http.StatusOK)
	kit.Ready(t, b, http.StatusOK)
	for _, f := range taken {
		f.Finish(t)
	}
	kit.Same(t, "a run that the log had no room for", a.Run(t, waits), b.Run(t, waits))
	finishSteady(t, runs)
}

// fill starts runs with large inputs until one has no place.
func fill(t *testing.T, g *kit.Gateway) (taken []*kit.Follower, waits kit.Input) {
	t.Helper()
	for range 100 {
		prompt := kit.Say("Listen.")
		in := kit.NewInput(prompt + kit.Long(100_000))
		kit.SharedModel.AnswerWith(t, prompt, kit.Say("I see."))
		ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
		t.Cleanup(cancel)
		f := g.Quiet(ctx, in)
		t.Cleanup(f.Cut)
		err := f.Connect()
		var status *kit.StatusError
		if errors.As(err, &status) && status.Status == http.StatusServiceUnavailable {
			return taken, in
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	t.Fatal("the log does not become full")
	return nil, kit.Input{}
}

// widen lifts the bound of the log.
func widen(t *testing.T, c *kit.Cluster) {
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
