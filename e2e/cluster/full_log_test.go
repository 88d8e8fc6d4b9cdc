package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/e2e/kit"
)

// TestLogFull: the log is full, by its own limit and by that of its server. Runs wait, and continue
// when there is room. Nothing that was acknowledged is lost.
func TestLogFull(t *testing.T) {
	t.Parallel()
	const little = "1000KiB"
	t.Run("Stream", func(t *testing.T) {
		t.Parallel()
		c := kit.NewCluster(t)
		c.Env = append(c.Env, "PERDURE_STREAM_MAX_BYTES="+little)
		c.StartNATS(t, 1)
		fillAndWiden(t, c, func() { widen(t, c) })
	})
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		c := kit.NewCluster(t)
		log := c.StartNATS(t, 1, "-max-store", "1000000")[0]
		fillAndWiden(t, c, func() {
			if err := log.Stop(); err != nil {
				t.Error(err)
			}
			log.Args = append(log.Args, "-max-store", "1000000000")
			log.Start(t)
		})
	})
}

// fillAndWiden fills the log during runs, and makes widen raise the limit.
func fillAndWiden(t *testing.T, c *kit.Cluster, widen func()) {
	t.Helper()
	c.StartTemporal(t)
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	runs := startSteady(t, 3, 3_000, a, b)
	untilContent(t, runs, 1)
	kit.AwaitReadyStatus(t, a, http.StatusOK)
	taken, waits := fill(t, a)
	kit.AwaitReadyStatus(t, a, http.StatusServiceUnavailable)
	kit.AwaitReadyStatus(t, b, http.StatusServiceUnavailable)
	resp, err := a.Get(t.Context(), "/readyz", "")
	if r := kit.ReadProblem(t, resp, err); r.Code != "log_full" {
		t.Errorf("/readyz: got %+v, want log_full", r)
	}
	widen()
	kit.AwaitReadyStatus(t, a, http.StatusOK)
	kit.AwaitReadyStatus(t, b, http.StatusOK)
	for _, f := range taken {
		f.Finish(t)
	}
	kit.WantSameEvents(t, "a run that the log had no room for", a.Run(t, waits), b.Run(t, waits))
	finishSteady(t, runs)
}

// fill starts runs with large inputs until the log has no room for one.
func fill(t *testing.T, g *kit.API) (taken []*kit.Follower, waits kit.Input) {
	t.Helper()
	for range 100 {
		prompt := kit.Marked("Listen.")
		in := kit.NewInput(prompt + kit.LongText(100_000))
		kit.SharedModel.AnswerWith(t, prompt, kit.Marked("I see."))
		ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
		t.Cleanup(cancel)
		f := g.NewUnrecordedFollower(ctx, in)
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

// widen raises the limit of the log's stream.
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
