package activities_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/temporaltest"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

var run = stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r1"}

// fixture is the run workflow with its real activities on a real log, in Temporal's test
// environment.
type fixture struct {
	t         *testing.T
	server    *server.Server // of the log
	log       *stream.Log
	follower  *stream.Follower
	env       *testsuite.TestWorkflowEnvironment
	acts      *activities.Activities
	limits    runs.Limits
	agent     *agents.Definition
	others    map[string]*agents.Definition // agents that work is handed to
	input     agui.RunAgentInput            // other members of the run's input
	more      []agui.Message                // further messages of the user
	requester *auth.Principal               // of the run
	accepted  stream.Acceptance             // the accepted conversation of the input, before the message
	hold      bool                          // the run is held while interrupts are open
	revision  string                        // of the agent; one of a tenant's agent has a prefix
	calls     atomic.Int32                  // of the model
	history   history                       // all data that Temporal receives
	logged    buffer                        // log records from warnings on
	outage    atomic.Int32                  // how often the definition is unavailable
}

// Revision returns the fixture's definitions.
func (f *fixture) Revision(_ context.Context, _, name, _ string) (*agents.Definition, error) {
	if f.outage.Add(-1) >= 0 {
		return nil, fmt.Errorf("%w: no responders", stream.ErrUnavailable)
	}
	if d := f.others[name]; d != nil {
		return d, nil
	}
	return f.agent, nil
}

func (f *fixture) Latest(_ context.Context, _, name string) (catalog.Published, error) {
	d := f.others[name]
	if d == nil {
		return catalog.Published{}, fmt.Errorf("%w: %s", catalog.ErrUnknownAgent, name)
	}
	return catalog.Published{Definition: d, Revision: d.Revision()}, nil
}

// Authors implements activities.Definitions: the fixture has no agents of tenants.
func (f *fixture) Authors(_ context.Context, _ string, agent stream.AgentRevision) ([]*auth.Principal, error) {
	return nil, &catalog.UnknownError{Agent: agent.Agent, Revision: agent.Revision}
}

// script answers the n-th model call, from 1, with chunks or an error.
type script func(n int, req *llm.Request) ([]llm.Chunk, error)

// setup returns a fixture whose model follows a script, with the available tools.
func setup(t *testing.T, s script, available ...tools.Tool) *fixture {
	t.Helper()
	f := &fixture{t: t, server: streamtest.Server(t), limits: runs.Limits{Turns: 5, Tokens: 1000, Duration: time.Hour, ParallelTools: 4}}
	f.log = streamtest.OpenOn(t, f.server)
	f.follower = streamtest.Follow(t, f.log)
	commands, err := f.log.ListenCommands()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = commands.Stop() })
	registry, err := tools.NewRegistry(available...)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(available))
	for i, tool := range available {
		names[i] = tool.Spec().Name
	}
	model := llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		chunks, err := s(int(f.calls.Add(1)), req)
		return func(yield func(llm.Chunk, error) bool) {
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				f.awaitShown(ctx, len(chunks))
				yield(nil, err)
			}
		}
	})
	f.history.DataConverter = runs.DataConverter()
	f.env = temporaltest.NewEnvironment(slog.NewJSONHandler(&f.logged, &slog.HandlerOptions{Level: slog.LevelWarn}), &errorRecorder{history: &f.history})
	f.env.SetDataConverter(&f.history)
	workflows.Register(f.env, nil)
	f.agent = &agents.Definition{Name: "a", Model: "test/m", Instructions: "Be brief.", Tools: names}
	f.acts = &activities.Activities{Log: f.log, Snapshots: snapshot.NewStore(f.log), Models: map[string]llm.Model{"test": model}, Tools: registry, Commands: commands, Local: activities.NewLocalSteps("process"), Agents: f}
	t.Cleanup(f.acts.Local.Stop)
	f.acts.Register(f.env)
	return f
}

// awaitShown waits until readers are shown n pieces of text and reasoning. Output right before a
// failure may or may not be written, and a test needs to know.
func (f *fixture) awaitShown(ctx context.Context, n int) {
	shown := f.views().Run(run, view.Options{})
	defer shown.Close()
	for n > 0 {
		frames, err := shown.Next(ctx, time.Minute)
		if err != nil || frames == nil {
			f.t.Errorf("stream of the run: got no events, %v, want events", err)
			return
		}
		for _, frame := range frames {
			switch frame.Type {
			case agui.EventTextMessageContent, agui.EventReasoningMessageContent, agui.EventReasoningEncryptedValue,
				agui.EventActivitySnapshot, agui.EventActivityDelta:
				n--
			}
		}
	}
}

// run executes the workflow for a user's message and returns the events that a reader is shown.
func (f *fixture) run(message string) ([]agui.Event, runs.Result) {
	f.t.Helper()
	ctx := f.t.Context()
	user := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(message)}
	in := &stream.Input{Input: f.input, Accepted: f.accepted, Requester: f.requester}
	in.Input.ThreadID, in.Input.RunID, in.Input.ProtocolVersion = run.Thread.ID, run.ID, "1.0"
	for _, m := range append([]agui.Message{user}, f.more...) {
		in.Accepted.Tail = append(in.Accepted.Tail, stream.TailMessage{ID: m.ID, Message: &m})
	}
	p, err := f.log.ProposeInput(ctx, run, [32]byte{1}, in)
	if err != nil {
		f.t.Fatal(err)
	}
	f.env.ExecuteWorkflow(runs.TypeRun, runs.Input{
		Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, AgentRef: runs.AgentRef{Agent: "a", Revision: f.revision, Limits: f.limits, Steps: len(f.agent.Steps) > 0, Program: f.agent.Workflow, HasResult: f.agent.Workflow != "" && f.agent.Output != nil}, Input: p.Seq, Digest: p.Digest, Hold: f.hold,
	})
	var result runs.Result
	if err := f.env.GetWorkflowResult(&result); err != nil {
		f.t.Fatalf("workflow: %v", err)
	}
	return f.shown(), result
}

// shown returns the events that a reader is shown of the run, which has ended.
func (f *fixture) shown() []agui.Event {
	f.t.Helper()
	ctx := f.t.Context()
	shown := f.views().Run(run, view.Options{})
	defer shown.Close()
	var events []agui.Event
	var verifier agui.Verifier
	for {
		frames, err := shown.Next(ctx, time.Minute)
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			f.t.Fatal(err)
		}
		if frames == nil {
			f.t.Fatal("frames of the stream = nil, want a value")
		}
		for _, frame := range frames {
			event, err := agui.Decode(frame.Event)
			if err == nil {
				err = verifier.Check(event)
			}
			if err != nil {
				f.t.Fatalf("%s: %v", frame.Event, err)
			}
			events = append(events, event)
		}
	}
}

// conversation returns the messages of the thread.
func (f *fixture) conversation() []agui.Message {
	f.t.Helper()
	r, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.Messages()
}

// typesOf returns the types of events, separated by spaces.
func typesOf(events []agui.Event) string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e.EventType())
	}
	return strings.Join(names, " ")
}

// pointer returns a pointer to a number.
func pointer(n int64) *int64 { return &n }

// textAnswer returns the chunks of an answer with text.
func textAnswer(text string) ([]llm.Chunk, error) {
	return []llm.Chunk{llm.TextDelta{Text: text}, llm.Finish{Reason: llm.FinishStop, Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(10), Output: pointer(2)}}}, nil
}

// callAnswer returns the chunks of an answer with tool calls, each with its ID, name and arguments.
func callAnswer(calls ...[3]string) ([]llm.Chunk, error) {
	var chunks []llm.Chunk
	for i, c := range calls {
		chunks = append(chunks, llm.ToolCallStart{Index: i, ID: c[0], Name: c[1]}, llm.ToolCallDelta{Index: i, Arguments: c[2]})
	}
	return append(chunks, llm.Finish{Reason: llm.FinishToolCalls, Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(0), Output: pointer(0)}}), nil
}

func TestTextRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Messages) != 2 || req.Messages[0].Text() != "Be brief." || req.Messages[1].Text() != "hello" {
			t.Errorf("messages sent: got %+v, want the instructions and the user's message", req.Messages)
		}
		if req.ReasoningEffort != "low" {
			t.Errorf("reasoning effort = %q, want low", req.ReasoningEffort)
		}
		return textAnswer("hi there")
	})
	fixture.agent.Reasoning.Effort = "low"
	events, result := fixture.run("hello")
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"
	if got := typesOf(events); got != want {
		t.Errorf("events: got\n%s, want\n%s", got, want)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	finished := events[len(events)-1].(*agui.RunFinished)
	mustEqual(t, "number of models in the usage", len(finished.Usage), 1)
	mustEqual(t, "input tokens", *finished.Usage[0].InputTokens, 10)
	wantEqual(t, "output tokens", *finished.Usage[0].OutputTokens, 2)
	m := fixture.conversation()
	mustEqual(t, "number of messages", len(m), 2)
	wantEqual(t, "answer in the conversation", m[1].Content.Text(), "hi there")
}

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

func TestParallelToolsWithFailures(t *testing.T) {
	t.Parallel()
	both := make(chan struct{}, 2)
	add := tools.Func("add", "adds", func(ctx context.Context, in pair) (int, error) {
		both <- struct{}{}
		for len(both) < 2 { // each waits for the other: they must run in parallel
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
		}
		return in.A + in.B, nil
	})
	fails := tools.Func("fails", "fails", func(context.Context, pair) (int, error) { return 0, errors.New("no such thing") })
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		switch n {
		case 1:
			return callAnswer([3]string{"call_x", "add", `{"a":1,"b":2}`}, [3]string{"call_y", "add", `{"a":3,"b":4}`})
		case 2:
			for _, m := range req.Messages[len(req.Messages)-2:] {
				if want := map[string]string{"call_x": "3", "call_y": "7"}[m.ToolCallID]; m.Role != llm.RoleTool || m.Text() != want || m.IsError {
					t.Errorf("result sent: got %+v, want %q", m, want)
				}
			}
			return callAnswer([3]string{"call_x", "fails", `{"a":1,"b":2}`}, [3]string{"z", "add", `{"a":"one"}`}, [3]string{"w", "nonsense", ``})
		}
		var sent []string
		for _, m := range req.Messages[len(req.Messages)-3:] {
			sent = append(sent, m.ToolCallID+": "+m.Text())
			if !m.IsError || req.ReasoningEffort != "low" {
				t.Errorf("result sent: got %+v with the effort %q, want an error and low", m, req.ReasoningEffort)
			}
		}
		all := strings.Join(sent, "\n")
		for _, want := range []string{"no such thing", "/a", "There is no tool \"nonsense\""} {
			if !strings.Contains(all, want) {
				t.Errorf("results sent: want text with %q, got\n%s", want, all)
			}
		}
		return textAnswer("done")
	}, add, fails)
	fixture.agent.Reasoning.Effort = "low"
	events, result := fixture.run("add")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", fixture.calls.Load(), 3)
	if got := strings.Count(typesOf(events), "TOOL_CALL_RESULT"); got != 5 {
		t.Errorf("results: got %d, want 5", got)
	}
	if got := strings.Count(typesOf(events), "STEP_STARTED"); got != 5 {
		t.Errorf("steps: got %d, want model, tools, model, tools, model", got)
	}
}

func TestRunEndsAtLimits(t *testing.T) {
	t.Parallel()
	again := func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"a", "add", `{"a":1,"b":1}`}, [3]string{"b", "add", `{"a":1,"b":1}`})
	}
	add := tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	for _, c := range []struct {
		wantCode string
		limits   runs.Limits
		script   script
	}{
		{runs.CodeLimitTurns, runs.Limits{Turns: 2, Tokens: 1000, Duration: time.Hour, ParallelTools: 4}, again},
		{runs.CodeLimitParallelTools, runs.Limits{Turns: 2, Tokens: 1000, Duration: time.Hour, ParallelTools: 1}, again},
		{runs.CodeLimitTokens, runs.Limits{Turns: 2, Tokens: 5, Duration: time.Hour, ParallelTools: 4}, func(int, *llm.Request) ([]llm.Chunk, error) {
			chunks, err := callAnswer([3]string{"a", "add", `{"a":1,"b":1}`})
			chunks[len(chunks)-1] = llm.Finish{Reason: llm.FinishToolCalls, Usage: llm.Usage{Total: pointer(6)}}
			return chunks, err
		}},
	} {
		t.Run(c.wantCode, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, c.script, add)
			fixture.limits = c.limits
			events, result := fixture.run("go on")
			last, ok := events[len(events)-1].(*agui.RunError)
			if !ok || last.Code != c.wantCode || result.Code != c.wantCode {
				t.Errorf("got %+v (%+v), want RUN_ERROR %s", events[len(events)-1], result, c.wantCode)
			}
		})
	}
}

// TestRetryableModelErrorDuringStream: a model that fails in the middle of its answer is called
// again. Live readers see the first part retracted, later readers do not see it, and the
// conversation has the answer once.
func TestRetryableModelErrorDuringStream(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return []llm.Chunk{llm.TextDelta{Text: "hal"}}, &llm.Error{Code: llm.CodeUnavailable, Status: 503, Message: "SECRET PROMPT"}
		}
		return textAnswer("whole")
	})
	events, result := fixture.run("hello")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", fixture.calls.Load(), 2)
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED MESSAGES_SNAPSHOT RUN_FINISHED"
	if got := typesOf(events); got != want {
		t.Errorf("late reader: got\n%s, want\n%s", got, want)
	}
	m := fixture.conversation()
	mustEqual(t, "number of messages", len(m), 2)
	wantEqual(t, "answer in the conversation", m[1].Content.Text(), "whole")
}

// TestModelErrorEndsRun: the provider's message is in the run's end, and not in
// Temporal's history.
func TestModelErrorEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{llm.TextDelta{Text: "hal"}}, &llm.Error{
			Code: llm.CodeInvalidRequest, Status: 400, Message: "temperature is not supported", Host: "models.example", Hint: "set NOTHING",
		}
	})
	events, result := fixture.run("hello")
	last, ok := events[len(events)-1].(*agui.RunError)
	mustEqual(t, "last event is RUN_ERROR", ok, true)
	mustEqual(t, "code of the last event", last.Code, string(llm.CodeInvalidRequest))
	mustEqual(t, "code", result.Code, last.Code)
	mustEqual(t, "number of model calls", fixture.calls.Load(), 1)
	const safe = "the model call failed: invalid_request (HTTP 400): test/m at models.example; set NOTHING"
	if want := safe + ": temperature is not supported"; last.Message != want {
		t.Errorf("message: got\n%s, want\n%s", last.Message, want)
	}
	if received := fixture.history.String(); !strings.Contains(received, safe) || strings.Contains(received, "temperature") {
		t.Errorf("data of Temporal: got\n%s, want %q and no more", received, safe)
	}
	for _, want := range []string{"temperature is not supported", `"provider":"test"`, `"model":"m"`, `"host":"models.example"`, `"hint":"set NOTHING"`, `"status":400`, `"attempt":1`} {
		if !strings.Contains(fixture.logged.String(), want) {
			t.Errorf("log = %q, want text with %q", fixture.logged.String(), want)
		}
	}
	if m := fixture.conversation(); len(m) != 1 {
		t.Errorf("conversation: got %+v, want no part of the answer", m)
	}
}

// TestCancelBeforeStart: a cancel before the run begins is not lost. The model is not called.
func TestCancelBeforeStart(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("too late") })
	if _, err := fixture.log.RequestCancel(t.Context(), run, stream.Cancel{Reason: "changed my mind"}); err != nil {
		t.Fatal(err)
	}
	events, result := fixture.run("hello")
	finished, ok := events[len(events)-1].(*agui.RunFinished)
	mustEqual(t, "last event is RUN_FINISHED", ok, true)
	if finished.Outcome == nil {
		t.Fatal("outcome of the last event = nil, want a value")
	}
	mustEqual(t, "outcome of the last event", finished.Outcome.Type, agui.OutcomeCancelled)
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 0)
}

// TestLanesAgree: the workflow uses as many lanes as the log has.
func TestLanesAgree(t *testing.T) {
	t.Parallel()
	if runs.MaxLanes != stream.MaxToolLanes {
		t.Errorf("number of lanes in the workflow = %d, want %d as in the log", runs.MaxLanes, stream.MaxToolLanes)
	}
}

// views shows runs to readers.
func (f *fixture) views() view.Viewer {
	return view.Viewer{Follower: f.follower, Snapshots: f.acts.Snapshots}
}
