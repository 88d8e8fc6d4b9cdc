package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Many runs at once: each ends well, and each with its own answer.
func TestManyRuns(t *testing.T) {
	const runs, atOnce = 400, 50
	var g errgroup.Group
	g.SetLimit(atOnce)
	start := time.Now()
	for i := range runs {
		g.Go(func() error { return shared.echo(t, i) })
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs, %d at a time: %.0f runs/s", runs, atOnce, runs/time.Since(start).Seconds())
}

// echo runs a run whose answer only it can have.
func (p *endpoint) echo(t *testing.T, i int) error {
	question := say(fmt.Sprintf("%d?", i))
	f := p.reader(t, newInput("echo "+question))
	if err := f.read(); err != nil {
		return fmt.Errorf("run %d: %w", i, err)
	}
	var answer string
	for _, e := range f.events {
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			answer += e.member("delta")
		}
	}
	if last := f.events[len(f.events)-1]; last.Type != "RUN_FINISHED" || answer != "You said: "+question {
		return fmt.Errorf("run %d: %q, %s", i, answer, last.Data)
	}
	if f.comebacks > 0 {
		return errors.New("the stream broke off")
	}
	return nil
}
