package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// runError returns the RUN_ERROR that ends a run.
func runError(t *testing.T, events []agui.Event) *agui.RunError {
	t.Helper()
	last, ok := events[len(events)-1].(*agui.RunError)
	if !ok {
		t.Fatalf("last event: got %+v, want RUN_ERROR", events[len(events)-1])
	}
	return last
}

// TestPanicFailsRunWithoutItsText: a panic is a failure like others. Its text may be content and is
// not recorded.
func TestPanicFailsRunWithoutItsText(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil)
	fixture.acts.Models["test"] = llm.ModelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Chunk, error] {
		fixture.calls.Add(1)
		panic("SECRET PROMPT")
	})
	events, _ := fixture.run("hello")
	end := runError(t, events)
	wantEqual(t, "code of the end", end.Code, runs.CodeInternal)
	if strings.Contains(end.Message, "SECRET") {
		t.Errorf("message of the end = %q, want no %q", end.Message, "SECRET")
	}
	wantEqual(t, "number of model calls", fixture.calls.Load(), 8)
}

// TestRepeatedToolCallNumbers: some servers number tool calls from 1, and some
// start the second before the first.
func TestRepeatedToolCallNumbers(t *testing.T) {
	t.Parallel()
	var got []string
	note := tools.Func("note", "notes", func(_ context.Context, in struct {
		A string `json:"a"`
	}) (string, error) {
		return in.A, nil
	})
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n > 1 {
			for _, m := range req.Messages[len(req.Messages)-2:] {
				got = append(got, m.ToolCallID+": "+m.Text())
			}
			return textAnswer("done")
		}
		return []llm.Chunk{
			llm.ToolCallStart{Index: 2, ID: "second", Name: "note"}, llm.ToolCallStart{Index: 1, ID: "first", Name: "note"},
			llm.ToolCallDelta{Index: 1, Arguments: `{"a":`}, llm.ToolCallDelta{Index: 2, Arguments: `{"a":"two"}`}, llm.ToolCallDelta{Index: 1, Arguments: `"one"}`},
			llm.Finish{Reason: llm.FinishToolCalls},
		}, nil
	}, note)
	fixture.run("go")
	slices.Sort(got) // the calls run in parallel
	all := strings.Join(got, ", ")
	wantEqual(t, "results sent", all, `first: one, second: two`)
}

// TestNumberOfToolCallsIsLimited: the number of calls in an answer is not bounded. The
// workflow learns that it is too high without all calls in its history.
func TestNumberOfToolCallsIsLimited(t *testing.T) {
	t.Parallel()
	add := tools.Func(strings.Repeat("n", 64), "adds", func(context.Context, pair) (int, error) { return 0, nil })
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		var calls [][3]string
		for i := range 200 {
			calls = append(calls, [3]string{fmt.Sprint(i), add.Spec().Name, `{}`})
		}
		return callAnswer(calls...)
	}, add)
	events, _ := fixture.run("go")
	end := runError(t, events)
	wantEqual(t, "code of the end", end.Code, runs.CodeLimitParallelTools)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 1)
}

// TestLongModelName: a provider may return a model name of any length.
func TestLongModelName(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{llm.TextDelta{Text: "hi"}, llm.Finish{Reason: llm.FinishStop, Model: strings.Repeat("long ", 10_000)}}, nil
	})
	_, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 1)
}

// TestCancelledToolIsAbandoned: a tool that ignores its context does not keep a
// cancelled run from ending.
func TestCancelledToolIsAbandoned(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var f *fixture
	deaf := tools.Func("deaf", "does not listen", func(ctx context.Context, _ pair) (int, error) {
		if _, err := f.log.RequestCancel(ctx, run, stream.Cancel{Reason: "enough"}); err != nil {
			t.Error(err)
		}
		if err := f.log.AnnounceCancel(run); err != nil {
			t.Error(err)
		}
		<-release
		return 0, nil
	})
	f = setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", "deaf", `{"a":1,"b":2}`})
	}, deaf)
	defer close(release)
	_, result := f.run("go")
	if result.Outcome != runs.OutcomeCancelled {
		t.Errorf("got %+v, want cancelled", result)
	}
	m := f.conversation()
	if last := m[len(m)-1]; last.Role != agui.RoleTool || !strings.Contains(last.Content.Text(), "unknown") {
		t.Errorf("last message: got %+v, want a result that says that the effect is unknown", last)
	}
}

// TestCancelDuringText: text that arrives with the cancel is both stored and shown, or neither.
func TestCancelDuringText(t *testing.T) {
	t.Parallel()
	for name, chunks := range map[string][]llm.Chunk{
		"text goes on":     {llm.TextDelta{Text: "one "}, llm.TextDelta{Text: "two"}},
		"text begins":      {llm.ReasoningDelta{Text: "hm"}, llm.TextDelta{Text: "two"}},
		"a thought begins": {llm.TextDelta{Text: "one "}, llm.ReasoningDelta{Text: "hm"}},
		"a call begins":    {llm.TextDelta{Text: "one "}, llm.ToolCallStart{ID: "x", Name: "tool"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, nil)
			fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
				return func(yield func(llm.Chunk, error) bool) {
					if !yield(chunks[0], nil) {
						return
					}
					if _, err := fixture.log.RequestCancel(ctx, run, stream.Cancel{}); err != nil {
						t.Error(err)
					}
					if err := fixture.log.AnnounceCancel(run); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
					yield(chunks[1], nil)
				}
			})
			events, result := fixture.run("go")
			if result.Outcome != runs.OutcomeCancelled {
				t.Errorf("got %+v, want cancelled", result)
			}
			shown := agui.NewReducer(nil, nil)
			for _, event := range events {
				if err := shown.Apply(event); err != nil {
					t.Fatal(err)
				}
			}
			conversation := fixture.conversation()[1:]
			for i := range conversation {
				conversation[i].Error = "" // TOOL_CALL_RESULT has none
			}
			if diff := cmp.Diff(encodeMessages(t, conversation), encodeMessages(t, shown.Messages())); diff != "" {
				t.Errorf("messages differ (-thread +clients):\n%s", diff)
			}
		})
	}
}

// encodeMessages returns messages as JSON, one a line.
func encodeMessages(t *testing.T, messages []agui.Message) string {
	t.Helper()
	raw, err := json.MarshalIndent(messages, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestNoToolCallAfterCancel: a cancel that is announced between two steps keeps tools from
// being called.
func TestNoToolCallAfterCancel(t *testing.T) {
	t.Parallel()
	called := false
	tool := tools.Func("tool", "works", func(context.Context, pair) (int, error) { called = true; return 0, nil })
	var f *fixture
	f = setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		_, err := f.log.RequestCancel(t.Context(), run, stream.Cancel{})
		chunks, _ := callAnswer([3]string{"x", "tool", `{"a":1,"b":2}`})
		return chunks, err
	}, tool)
	_, result := f.run("go")
	wantEqual(t, "tool is called", called, false)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
}

// TestInputOfCutConversationEndsRun: while an input is queued, another client may cut the
// conversation that it continues. Its run then ends with conversation_changed.
func TestInputOfCutConversationEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("never") })
	fixture.accepted = stream.Acceptance{Keep: 4, Last: "gone"}
	events, result := fixture.run("and then?")
	end := runError(t, events)
	wantEqual(t, "code of the end", end.Code, "conversation_changed")
	wantEqual(t, "code", result.Code, end.Code)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 0)
	if m := fixture.conversation(); len(m) != 1 || m[0].Content.Text() != "and then?" {
		t.Errorf("conversation: got %+v, want the client's message", m)
	}
}

// TestFrozenWorkerTakesStep: a worker that was frozen continues and takes the step
// from the attempt that replaced it. That attempt fails, and the run continues with another one.
func TestFrozenWorkerTakesStep(t *testing.T) {
	t.Parallel()
	var f *fixture
	f = setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n > 1 {
			return textAnswer("here I am")
		}
		begun, err := f.log.OpeningOf(t.Context(), run)
		if err != nil {
			return nil, err
		}
		lateAttempt, _, err := f.log.Begin(t.Context(), stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: begun.Execution})
		if err != nil {
			return nil, err
		}
		t.Cleanup(lateAttempt.Close)
		return textAnswer("lost")
	})
	_, result := f.run("hello")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", f.calls.Load(), 2)
	m := f.conversation()
	mustEqual(t, "number of messages", len(m), 2)
	wantEqual(t, "answer in the conversation", m[1].Content.Text(), "here I am")
}

// TestRetryLimits: an outage of the log is retried without a bound, a provider only a few
// times.
func TestRetryLimits(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("at last") })
	fixture.outage.Store(50)
	_, result := fixture.run("hello")
	wantEqual(t, "after an outage: outcome", result.Outcome, runs.OutcomeSuccess)
	fixture = setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return nil, &llm.Error{Code: llm.CodeUnavailable} })
	events, _ := fixture.run("hello")
	end := runError(t, events)
	wantEqual(t, "code of the end", end.Code, string(llm.CodeUnavailable))
	wantEqual(t, "number of model calls", fixture.calls.Load(), 8)
}

// finish executes the activity that ends a run.
func (f *fixture) finish(in runs.FinishInput) (runs.FinishResult, error) {
	f.t.Helper()
	env := newActivityEnv()
	env.SetDataConverter(runs.DataConverter())
	f.acts.Register(env)
	var done runs.FinishResult
	value, err := env.ExecuteActivity(runs.ActivityFinish, in)
	if err == nil {
		err = value.Get(&done)
	}
	return done, err
}

// TestLostRunEndsWithLogLost: a log that was restored from an older copy may lack
// records that the workflow knows.
func TestLostRunEndsWithLogLost(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil)
	ctx := t.Context()
	user := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("hello")}
	p, err := fixture.log.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: user.ID, Message: &user}}}})
	if err != nil {
		t.Fatal(err)
	}
	done, err := fixture.finish(runs.FinishInput{
		Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Execution: "e1", After: 999, Outcome: runs.OutcomeSuccess,
		Beginning: runs.Beginning{Input: p.Seq, Digest: p.Digest}, Agent: "a", First: "1/model",
	})
	if err != nil || done.Code != runs.ErrorLogLost {
		t.Fatalf("Finish: got %+v, %v, want log_lost", done, err)
	}
	if ended, err := fixture.log.HasEnded(ctx, run); err != nil || !ended {
		t.Errorf("HasEnded = %v, %v, want true", ended, err)
	}
}

func TestFinishOfOtherExecution(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("mine") })
	fixture.run("hello")
	_, err := fixture.finish(runs.FinishInput{
		Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Execution: "another", Outcome: runs.OutcomeError, Code: "x", First: "1/model",
	})
	if err == nil || !strings.Contains(err.Error(), runs.ErrorFenced) {
		t.Errorf("Finish by another execution: got %v, want fenced", err)
	}
}
