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

// deployFixture is a worker that lacks a tool until its agent has been read after times. Then
// another worker that has the tool replaces it.
type deployFixture struct {
	*fixture
	looks atomic.Int32
	after int32
	with  *tools.Registry
}

func (f *deployFixture) Revision(ctx context.Context, tenant, agent, revision string) (*agents.Definition, error) {
	if f.looks.Add(1) == f.after {
		f.acts.Tools = f.with
	}
	return f.fixture.Revision(ctx, tenant, agent, revision)
}

// setupDeploy returns a fixture whose missing tool is available after a number of lookups.
func setupDeploy(t *testing.T, after int32) *deployFixture {
	t.Helper()
	charge := tools.Func("charge", "charges", func(context.Context, pair) (int, error) { return 0, nil })
	base := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("done") }, charge)
	none, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	fixture := &deployFixture{fixture: base, after: after, with: base.acts.Tools}
	base.acts.Tools, base.acts.Agents = none, fixture
	return fixture
}

// TestAwaitMissingTool: a step waits for a worker with its tools, for longer than
// for its own failures.
func TestAwaitMissingTool(t *testing.T) {
	t.Parallel()
	fixture := setupDeploy(t, 20)
	_, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of lookups", fixture.looks.Load(), 20)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 1)
}

func TestMissingToolEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setupDeploy(t, 20)
	fixture.acts.ToolGrace = time.Nanosecond
	events, _ := fixture.run("go")
	end := runError(t, events)
	wantEqual(t, "code of the end", end.Code, "tool_unavailable")
	wantEqual(t, "message of the end", end.Message, `tools of the agent are not available: unknown tool "charge"`)
	wantEqual(t, "number of lookups", fixture.looks.Load(), 1)
}

// TestErrorNamesMissingAgents: all agents that are missing are named, in the order of the
// definition: subagents, then handoffs. The run does not wait for them.
func TestErrorNamesMissingAgents(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("done") })
	fixture.agent.Tools = []string{"agent:ann", "agent:bob", "handoff:cat", "agent:dan"}
	events, _ := fixture.run("go")
	const want = "an agent that the definition names is not published: catalog: unknown agent: ann; catalog: unknown agent: bob; catalog: unknown agent: dan; catalog: unknown agent: cat"
	if end := runError(t, events); end.Code != "agent_unavailable" || end.Message != want {
		t.Errorf("%+v, want %s", end, want)
	}
}

// TestLiveReadersSeeMissingTool: live readers are shown what a run waits for, once. Later
// readers are not.
func TestLiveReadersSeeMissingTool(t *testing.T) {
	t.Parallel()
	fixture := setupDeploy(t, 4)
	shown := fixture.views().Run(run, view.Options{})
	defer shown.Close()
	var live []agui.Event
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
				watching <- fmt.Errorf("no events: %w", err)
				return
			}
			for _, frame := range frames {
				event, err := agui.Decode(frame.Event)
				if err == nil {
					err = verifier.Check(event)
				}
				if err != nil {
					watching <- err
					return
				}
				live = append(live, event)
			}
		}
	}()
	events, result := fixture.run("go")
	if err := <-watching; err != nil || result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("watch = %v, run = %+v, want a successful run", err, result)
	}
	var notices []string
	for _, e := range live {
		if c, ok := e.(*agui.Custom); ok && c.Name == "perdure.toolUnavailable" {
			notices = append(notices, string(c.Value))
		}
	}
	mustEqual(t, "number of perdure.toolUnavailable events of live readers", len(notices), 1)
	if !strings.HasPrefix(notices[0], `{"reason":"unknown tool \"charge\"","until":"`) {
		t.Errorf("custom event of live readers = %q, want prefix %q", notices[0], `{"reason":"unknown tool \"charge\"","until":"`)
	}
	if strings.Contains(typesOf(events), "CUSTOM") {
		t.Errorf("events of later readers = %q, want no %q", typesOf(events), "CUSTOM")
	}
	log := fixture.logged.String()
	wantEqual(t, "number of log records about missing tools", strings.Count(log, "tools of a run are not available"), 1)
	if !strings.Contains(log, `unknown tool \"charge\"`) {
		t.Errorf("log = %q, want text with %q", log, `unknown tool \"charge\"`)
	}
}
