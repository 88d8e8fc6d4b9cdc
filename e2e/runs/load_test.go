package runs

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestManyRuns: many concurrent runs succeed, each with its own answer.
func TestManyRuns(t *testing.T) {
	const runs, atOnce = 400, 50
	var g errgroup.Group
	g.SetLimit(atOnce)
	start := time.Now()
	for i := range runs {
		g.Go(func() error { return kit.Shared.RunEcho(t, i) })
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs, %d at a time: %.0f runs/s", runs, atOnce, runs/time.Since(start).Seconds())
}
