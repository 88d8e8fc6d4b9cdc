package activities_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// deploying is a worker that lacks a tool until its agent has been looked up some times: another one that
// has it takes its place.
type deploying struct {
	*engine
	looks atomic.Int32
	after int32
	with  *tools.Registry
}

func (d *deploying) Revision(ctx context.Context, agent, revision string) (*agents.Definition, error) {
	if d.looks.Add(1) == d.after {
		d.acts.Tools = d.with
	}
	return d.engine.Revision(ctx, agent, revision)
}

func newDeploying(t *testing.T, after int32) *deploying {
	t.Helper()
	charge := tools.Func("charge", "charges", func(context.Context, pair) (int, error) { return 0, nil })
	e := newEngine(t, func(int, *llm.Request) ([]llm.Chunk, error) { return say("done") }, charge)
	none, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	d := &deploying{engine: e, after: after, with: e.acts.Tools}
	e.acts.Tools, e.acts.Agents = none, d
	return d
}

// A step waits for a worker that has its tools, for longer than for what it fails by itself.
func TestAToolThatComesInTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, 20)
	if _, result := d.run("go"); result.Outcome != workflows.OutcomeSuccess || d.looks.Load() != 20 || d.calls.Load() != 1 {
		t.Errorf("%+v after %d looks and %d calls", result, d.looks.Load(), d.calls.Load())
	}
}

func TestAToolThatDoesNotComeEndsTheRun(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, 20)
	d.acts.ToolGrace = time.Nanosecond
	events, _ := d.run("go")
	if end := terminal(t, events); end.Code != "tool_unavailable" || d.looks.Load() != 1 {
		t.Errorf("%+v after %d looks", end, d.looks.Load())
	}
}
