package activities_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/view"
	"github.com/perdure/perdure/tools"
)

// deployFixture is a worker that lacks a tool until its agent has been looked up some times: another
// one that has it takes its place.
type deployFixture struct {
	*fixture
	looks atomic.Int32
	after int32
	with  *tools.Registry
}

func (d *deployFixture) Revision(ctx context.Context, agent, revision string) (*agents.Definition, error) {
	if d.looks.Add(1) == d.after {
		d.acts.Tools = d.with
	}
	return d.fixture.Revision(ctx, agent, revision)
}

func setupDeploy(t *testing.T, after int32) *deployFixture {
	t.Helper()
	charge := tools.Func("charge", "charges", func(context.Context, pair) (int, error) { return 0, nil })
	e := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return say("done") }, charge)
	none, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	d := &deployFixture{fixture: e, after: after, with: e.acts.Tools}
	e.acts.Tools, e.acts.Agents = none, d
	return d
}

// A step waits for a worker that has its tools, for longer than for what it fails by itself.
func TestAToolThatComesInTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := setupDeploy(t, 20)
	if _, result := d.run("go"); result.Outcome != runs.OutcomeSuccess || d.looks.Load() != 20 || d.calls.Load() != 1 {
		t.Errorf("%+v after %d looks and %d calls", result, d.looks.Load(), d.calls.Load())
	}
}

func TestAToolThatDoesNotComeEndsTheRun(t *testing.T) {
	t.Parallel()
	d := setupDeploy(t, 20)
	d.acts.ToolGrace = time.Nanosecond
	events, _ := d.run("go")
	if end := terminal(t, events); end.Code != "tool_unavailable" || end.Message != `the agent needs what is not available: unknown tool "charge"` || d.looks.Load() != 1 {
		t.Errorf("%+v after %d looks", end, d.looks.Load())
	}
}

// Who watches is told at once what the run waits for, once. Later readers see only that it came.
func TestWhatARunLacksIsTold(t *testing.T) {
	t.Parallel()
	d := setupDeploy(t, 4)
	shown := d.views().Run(run, view.Options{})
	defer shown.Close()
	var told []agui.Event
	watching := make(chan error, 1)
	go func() {
		var verifier agui.Verifier
		for {
			frames, err := shown.Next(t.Context(), time.Minute)
			if errors.Is(err, io.EOF) {
				err = nil
				watching <- err
				return
			}
			if err != nil || frames == nil {
				watching <- fmt.Errorf("nothing is shown: %w", err)
				return
			}
			for _, f := range frames {
				event, err := agui.Decode(f.Event)
				if err == nil {
					err = verifier.Check(event)
				}
				if err != nil {
					watching <- err
					return
				}
				told = append(told, event)
			}
		}
	}()
	events, result := d.run("go")
	if err := <-watching; err != nil || result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("%v, %+v", err, result)
	}
	var notices []string
	for _, e := range told {
		if c, ok := e.(*agui.Custom); ok {
			notices = append(notices, c.Name+" "+string(c.Value))
		}
	}
	if len(notices) != 1 || !strings.HasPrefix(notices[0], `perdure.toolUnavailable {"reason":"unknown tool \"charge\"","until":"`) {
		t.Errorf("live readers are told %q", notices)
	}
	if strings.Contains(typesOf(events), "CUSTOM") {
		t.Errorf("later readers are told %s", typesOf(events))
	}
	if log := d.logged.String(); strings.Count(log, "a run needs what is not available") != 1 || !strings.Contains(log, `unknown tool \"charge\"`) {
		t.Errorf("the log says %s", log)
	}
}
