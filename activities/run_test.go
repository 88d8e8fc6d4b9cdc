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

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
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
	calls     atomic.Int32                  // of the model
	history   history                       // all data that Temporal receives
	logged    buffer                        // log records from warnings on
	outage    atomic.Int32                  // how often the definition is unavailable
}

// Revision returns the fixture's definitions.
func (e *fixture) Revision(_ context.Context, name, _ string) (*agents.Definition, error) {
	if e.outage.Add(-1) >= 0 {
		return nil, fmt.Errorf("%w: no responders", stream.ErrUnavailable)
	}
	if d := e.others[name]; d != nil {
		return d, nil
	}
	return e.agent, nil
}

func (e *fixture) Latest(_ context.Context, name string) (catalog.Published, error) {
	d := e.others[name]
	if d == nil {
		return catalog.Published{}, fmt.Errorf("%w: %s", catalog.ErrUnknownAgent, name)
	}
	return catalog.Published{Definition: d, Revision: d.Revision()}, nil
}

// script answers the n-th model call, from 1, with chunks or an error.
type script func(n int, req *llm.Request) ([]llm.Chunk, error)

func setup(t *testing.T, s script, available ...tools.Tool) *fixture {
	t.Helper()
	e := &fixture{t: t, log: streamtest.Open(t), limits: runs.Limits{Turns: 5, Tokens: 1000, Duration: time.Hour, ParallelTools: 4}}
	e.follower = streamtest.Follow(t, e.log)
	cancels, err := e.log.ListenCancels()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cancels.Stop() })
	registry, err := tools.NewRegistry(available...)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(available))
	for i, tool := range available {
		names[i] = tool.Spec().Name
	}
	model := llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		chunks, err := s(int(e.calls.Add(1)), req)
		return func(yield func(llm.Chunk, error) bool) {
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				e.awaitShown(ctx, len(chunks))
				yield(nil, err)
			}
		}
	})
	e.env = newWorkflowEnv(slog.NewJSONHandler(&e.logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e.history.DataConverter = runs.DataConverter()
	e.env.SetDataConverter(&e.history)
	e.env.SetOnActivityCompletedListener(func(_ *activity.Info, _ converter.EncodedValue, err error) {
		if err != nil {
			e.history.note(err.Error())
		}
	})
	workflows.Register(e.env, nil)
	e.agent = &agents.Definition{Name: "a", Model: "test/m", Instructions: "Be brief.", Tools: names}
	e.acts = &activities.Activities{Log: e.log, Snapshots: snapshot.NewStore(e.log), Models: map[string]llm.Model{"test": model}, Tools: registry, Cancels: cancels, Agents: e}
	e.acts.Register(e.env)
	return e
}

// awaitShown waits until readers are shown n pieces of text and reasoning. Output right before a
// failure may or may not be written, and a test needs to know.
func (e *fixture) awaitShown(ctx context.Context, n int) {
	shown := e.views().Run(run, view.Options{})
	defer shown.Close()
	for n > 0 {
		frames, err := shown.Next(ctx, time.Minute)
		if err != nil || frames == nil {
			e.t.Errorf("no events: %v", err)
			return
		}
		for _, f := range frames {
			switch f.Type {
			case agui.EventTextMessageContent, agui.EventReasoningMessageContent, agui.EventReasoningEncryptedValue,
				agui.EventActivitySnapshot, agui.EventActivityDelta:
				n--
			}
		}
	}
}

// run executes the workflow for a user's message and returns the events that a reader is shown.
func (e *fixture) run(message string) ([]agui.Event, runs.Result) {
	e.t.Helper()
	ctx := e.t.Context()
	user := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(message)}
	in := &stream.Input{Input: e.input, Accepted: e.accepted}
	in.Input.ThreadID, in.Input.RunID, in.Input.ProtocolVersion = run.Thread.ID, run.ID, "1.0"
	for _, m := range append([]agui.Message{user}, e.more...) {
		in.Accepted.Tail = append(in.Accepted.Tail, stream.TailMessage{ID: m.ID, Message: &m})
	}
	p, err := e.log.ProposeInput(ctx, run, [32]byte{1}, in)
	if err != nil {
		e.t.Fatal(err)
	}
	e.env.ExecuteWorkflow(runs.TypeRun, runs.Input{
		Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Agent: "a", Input: p.Seq, Digest: p.Digest, Limits: e.limits, Hold: e.hold,
		Steps: len(e.agent.Steps) > 0, Program: e.agent.Workflow,
	})
	var result runs.Result
	if err := e.env.GetWorkflowResult(&result); err != nil {
		e.t.Fatalf("workflow: %v", err)
	}
	shown := e.views().Run(run, view.Options{})
	defer shown.Close()
	var events []agui.Event
	var verifier agui.Verifier
	for {
		frames, err := shown.Next(ctx, time.Minute)
		if errors.Is(err, io.EOF) {
			return events, result
		}
		if err != nil || frames == nil {
			e.t.Fatalf("view: %v after %d events", err, len(events))
		}
		for _, f := range frames {
			event, err := agui.Decode(f.Event)
			if err == nil {
				err = verifier.Check(event)
			}
			if err != nil {
				e.t.Fatalf("%s: %v", f.Event, err)
			}
			events = append(events, event)
		}
	}
}

func (e *fixture) conversation() []agui.Message {
	e.t.Helper()
	r, err := e.acts.Snapshots.Latest(e.t.Context(), run.Thread, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	return r.Messages()
}

func typesOf(events []agui.Event) string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e.EventType())
	}
	return strings.Join(names, " ")
}

func count(n int64) *int64 { return &n }

func say(text string) ([]llm.Chunk, error) {
	return []llm.Chunk{llm.TextDelta{Text: text}, llm.Finish{Reason: llm.FinishStop, Provider: "test", Model: "m", Usage: llm.Usage{Input: count(10), Output: count(2)}}}, nil
}

func call(calls ...[3]string) ([]llm.Chunk, error) {
	var chunks []llm.Chunk
	for i, c := range calls {
		chunks = append(chunks, llm.ToolCallStart{Index: i, ID: c[0], Name: c[1]}, llm.ToolCallDelta{Index: i, Arguments: c[2]})
	}
	return append(chunks, llm.Finish{Reason: llm.FinishToolCalls, Provider: "test", Model: "m", Usage: llm.Usage{Input: count(0), Output: count(0)}}), nil
}

func TestTextRun(t *testing.T) {
	t.Parallel()
	e := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Messages) != 2 || req.Messages[0].Text() != "Be brief." || req.Messages[1].Text() != "hello" {
			t.Errorf("messages sent: got %+v", req.Messages)
		}
		if req.ReasoningEffort != "low" {
			t.Errorf("reasoning effort: got %q", req.ReasoningEffort)
		}
		return say("hi there")
	})
	e.agent.Reasoning.Effort = "low"
	events, result := e.run("hello")
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"
	if got := typesOf(events); got != want {
		t.Errorf("events: got\n%s, want\n%s", got, want)
	}
	if result.Outcome != runs.OutcomeSuccess {
		t.Errorf("outcome: got %v", result)
	}
	finished := events[len(events)-1].(*agui.RunFinished)
	if len(finished.Usage) != 1 || *finished.Usage[0].InputTokens != 10 || *finished.Usage[0].OutputTokens != 2 {
		t.Errorf("usage: got %+v", finished.Usage)
	}
	if m := e.conversation(); len(m) != 2 || m[1].Content.Text() != "hi there" {
		t.Errorf("conversation: got %+v", m)
	}
}

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

func TestParallelToolsAndTheirFailures(t *testing.T) {
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
	e := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		switch n {
		case 1:
			return call([3]string{"call_x", "add", `{"a":1,"b":2}`}, [3]string{"call_y", "add", `{"a":3,"b":4}`})
		case 2:
			for _, m := range req.Messages[len(req.Messages)-2:] {
				if want := map[string]string{"call_x": "3", "call_y": "7"}[m.ToolCallID]; m.Role != llm.RoleTool || m.Text() != want || m.IsError {
					t.Errorf("result sent: got %+v, want %q", m, want)
				}
			}
			return call([3]string{"call_x", "fails", `{"a":1,"b":2}`}, [3]string{"z", "add", `{"a":"one"}`}, [3]string{"w", "nonsense", ``})
		}
		var heard []string
		for _, m := range req.Messages[len(req.Messages)-3:] {
			heard = append(heard, m.ToolCallID+": "+m.Text())
			if !m.IsError || req.ReasoningEffort != "low" {
				t.Errorf("result sent: got %+v with the effort %q, want an error and low", m, req.ReasoningEffort)
			}
		}
		all := strings.Join(heard, "\n")
		for _, want := range []string{"no such thing", "/a", "There is no tool \"nonsense\""} {
			if !strings.Contains(all, want) {
				t.Errorf("results sent: no %q in\n%s", want, all)
			}
		}
		return say("done")
	}, add, fails)
	e.agent.Reasoning.Effort = "low"
	events, result := e.run("add")
	if result.Outcome != runs.OutcomeSuccess || e.calls.Load() != 3 {
		t.Fatalf("got %+v after %d model calls", result, e.calls.Load())
	}
	if got := strings.Count(typesOf(events), "TOOL_CALL_RESULT"); got != 5 {
		t.Errorf("results: got %d, want 5", got)
	}
	if got := strings.Count(typesOf(events), "STEP_STARTED"); got != 5 {
		t.Errorf("steps: got %d, want model, tools, model, tools, model", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	again := func(int, *llm.Request) ([]llm.Chunk, error) {
		return call([3]string{"a", "add", `{"a":1,"b":1}`}, [3]string{"b", "add", `{"a":1,"b":1}`})
	}
	add := tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	for _, c := range []struct {
		code   string
		limits runs.Limits
		script script
	}{
		{runs.CodeLimitTurns, runs.Limits{Turns: 2, Tokens: 1000, Duration: time.Hour, ParallelTools: 4}, again},
		{runs.CodeLimitParallelTools, runs.Limits{Turns: 2, Tokens: 1000, Duration: time.Hour, ParallelTools: 1}, again},
		{runs.CodeLimitTokens, runs.Limits{Turns: 2, Tokens: 5, Duration: time.Hour, ParallelTools: 4}, func(int, *llm.Request) ([]llm.Chunk, error) {
			chunks, err := call([3]string{"a", "add", `{"a":1,"b":1}`})
			chunks[len(chunks)-1] = llm.Finish{Reason: llm.FinishToolCalls, Usage: llm.Usage{Total: count(6)}}
			return chunks, err
		}},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			e := setup(t, c.script, add)
			e.limits = c.limits
			events, result := e.run("go on")
			last, ok := events[len(events)-1].(*agui.RunError)
			if !ok || last.Code != c.code || result.Code != c.code {
				t.Errorf("got %+v (%+v), want RUN_ERROR %s", events[len(events)-1], result, c.code)
			}
		})
	}
}

// TestRetryableModelErrorInMidStream: a model that fails in the middle of its answer is called
// again. Live readers see the first part retracted, later readers do not see it, and the
// conversation has the answer once.
func TestRetryableModelErrorInMidStream(t *testing.T) {
	t.Parallel()
	e := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return []llm.Chunk{llm.TextDelta{Text: "hal"}}, &llm.Error{Code: llm.CodeUnavailable, Status: 503, Message: "SECRET PROMPT"}
		}
		return say("whole")
	})
	events, result := e.run("hello")
	if result.Outcome != runs.OutcomeSuccess || e.calls.Load() != 2 {
		t.Fatalf("got %+v after %d model calls", result, e.calls.Load())
	}
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED MESSAGES_SNAPSHOT RUN_FINISHED"
	if got := typesOf(events); got != want {
		t.Errorf("late reader: got\n%s, want\n%s", got, want)
	}
	if m := e.conversation(); len(m) != 2 || m[1].Content.Text() != "whole" {
		t.Errorf("conversation: got %+v", m)
	}
}

// TestModelErrorEndsTheRunWithItsCause: the provider's message is in the run's end, and not in
// Temporal's history.
func TestModelErrorEndsTheRunWithItsCause(t *testing.T) {
	t.Parallel()
	e := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{llm.TextDelta{Text: "hal"}}, &llm.Error{
			Code: llm.CodeInvalidRequest, Status: 400, Message: "temperature is not supported", Host: "models.example", Hint: "set NOTHING",
		}
	})
	events, result := e.run("hello")
	last, ok := events[len(events)-1].(*agui.RunError)
	if !ok || last.Code != string(llm.CodeInvalidRequest) || result.Code != last.Code || e.calls.Load() != 1 {
		t.Fatalf("got %+v (%+v) after %d calls", events[len(events)-1], result, e.calls.Load())
	}
	const safe = "the model call failed: invalid_request (HTTP 400): test/m at models.example; set NOTHING"
	if want := safe + ": temperature is not supported"; last.Message != want {
		t.Errorf("message: got\n%s, want\n%s", last.Message, want)
	}
	if received := e.history.String(); !strings.Contains(received, safe) || strings.Contains(received, "temperature") {
		t.Errorf("data of Temporal: got\n%s, want %q and no more", received, safe)
	}
	for _, want := range []string{"temperature is not supported", `"provider":"test"`, `"model":"m"`, `"host":"models.example"`, `"hint":"set NOTHING"`, `"status":400`, `"attempt":1`} {
		if !strings.Contains(e.logged.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, e.logged.String())
		}
	}
	if m := e.conversation(); len(m) != 1 {
		t.Errorf("conversation: got %+v, want no part of the answer", m)
	}
}

// TestCancelBeforeTheStart: a cancel before the run begins is not lost. The model is not called.
func TestCancelBeforeTheStart(t *testing.T) {
	t.Parallel()
	e := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return say("too late") })
	if _, err := e.log.RequestCancel(t.Context(), run, stream.Cancel{Reason: "changed my mind"}); err != nil {
		t.Fatal(err)
	}
	events, result := e.run("hello")
	finished, ok := events[len(events)-1].(*agui.RunFinished)
	if !ok || finished.Outcome == nil || finished.Outcome.Type != agui.OutcomeCancelled || result.Outcome != runs.OutcomeCancelled {
		t.Fatalf("got %+v (%+v)", events[len(events)-1], result)
	}
	if e.calls.Load() != 0 {
		t.Error("the model was called")
	}
}

// TestLanesAgree: the workflow uses as many lanes as the log has.
func TestLanesAgree(t *testing.T) {
	t.Parallel()
	if runs.MaxLanes != stream.MaxToolLanes {
		t.Errorf("got %d lanes in the workflow and %d in the log", runs.MaxLanes, stream.MaxToolLanes)
	}
}

// views shows runs to readers.
func (e *fixture) views() view.Viewer {
	return view.Viewer{Follower: e.follower, Snapshots: e.acts.Snapshots}
}
