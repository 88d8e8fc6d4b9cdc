package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
	"github.com/perdure/perdure/tools"
)

// shopTool is a tool that asks where to send an item and whether to send it. It records the
// idempotency keys of its calls.
func shopTool(keys *[]string) tools.Tool {
	return tools.Func("send", "Sends.", func(ctx context.Context, in struct {
		What string `json:"what"`
	}) (string, error) {
		*keys = append(*keys, tools.IdempotencyKey(ctx))
		to, err := tools.Ask[string](ctx, tools.Question{Message: "Where to?", ExpiresIn: time.Hour, Metadata: map[string]any{"shop": "s"}})
		if err != nil {
			return "", err
		}
		yes, err := tools.Confirm(ctx, "To "+to+"?")
		return fmt.Sprint(in.What, " to ", to, ": ", yes), err
	})
}

// setupQuestion returns a fixture whose run has ended with the tool's first question.
func setupQuestion(t *testing.T, tool tools.Tool) (*fixture, agui.Interrupt, string) {
	t.Helper()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", tool.Spec().Name, `{"what":"a book"}`})
	}, tool)
	fixture.runUntilInterrupt("go")
	r := fixture.snapshot()
	mustEqual(t, "number of interrupts", len(r.Interrupts), 1)
	mustEqual(t, "run is sealed", r.Sealed, true)
	mustEqual(t, "number of entries", len(r.Entries), 2)
	return fixture, r.Interrupts[0], r.Entries[1].Message.ID
}

// snapshot returns the latest snapshot of the thread.
func (f *fixture) snapshot() *snapshot.Snapshot {
	f.t.Helper()
	r, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// lastQuestion returns the record of the last call's question.
func (f *fixture) lastQuestion() uint64 {
	f.t.Helper()
	for seq := f.snapshot().Seq; seq > 0; seq-- {
		if _, err := f.log.ToolQuestion(f.t.Context(), seq); err == nil {
			return seq
		}
	}
	f.t.Fatal("no question in the log")
	return 0
}

// repeatCall makes the call again in another run, with the decision.
func (f *fixture) repeatCall(runID, messageID string, q agui.Interrupt, d runs.Decision, content *stream.Decision) runs.ToolAnswer {
	f.t.Helper()
	if content != nil {
		content.Kind = string(d.Kind)
		d.Proposal = f.proposeDecision(content)
	}
	env := newActivityEnv()
	env.RegisterActivity(f.acts.CallTool)
	d.CallID = q.ToolCallID
	value, err := env.ExecuteActivity(f.acts.CallTool, runs.ToolCall{
		Step:       runs.Step{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: runID}, Execution: runID, Agent: "a", Revision: "v", ID: "0/tools/0", Name: "tools"},
		TurnStepID: "0/tools", CallID: q.ToolCallID, MessageID: messageID, Decision: &d, QuestionRecord: f.lastQuestion(), Beginning: &runs.Beginning{Continues: run.ID},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var answer runs.ToolAnswer
	if err := value.Get(&answer); err != nil {
		f.t.Fatal(err)
	}
	return answer
}

// providerMessage returns a decision with an answer.
func providerMessage(content string) *stream.Decision {
	return &stream.Decision{Content: json.RawMessage(content), Reason: content} // the reason makes the test's proposals differ
}

// TestToolQuestion: a tool's question is an interrupt of the run. The call is made again with all
// earlier answers and the same idempotency key. Each part of the tool's work is done once.
func TestToolQuestion(t *testing.T) {
	t.Parallel()
	var keys []string
	fixture, q, message := setupQuestion(t, shopTool(&keys))
	wantEqual(t, "first question: reason", q.Reason, "input_required")
	wantEqual(t, "first question: message", q.Message, "Where to?")
	wantEqual(t, "response schema of the first question", string(q.ResponseSchema), `{"type":"string"}`)
	if q.ExpiresAt == "" {
		t.Error("first question: ExpiresAt is empty, want a value")
	}
	wantEqual(t, "metadata of the first question", string(q.Metadata["shop"]), `"s"`)
	if by, err := stream.QuestionSourceOf(q); err != nil || by.Number != 1 || by.Tool != "send" || by.Agent != "a" || by.Revision != "v" {
		t.Errorf("source of the question: got %+v, %v, want question 1 of the tool send of a@v", by, err)
	}
	answer := fixture.repeatCall("r2", message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: 1}, providerMessage(`"Ulm"`))
	if answer.Question == nil {
		t.Fatal("second question = nil, want a value")
	}
	mustEqual(t, "second question: number", answer.Question.Number, 2)
	mustEqual(t, "second question: call ID", answer.Question.CallID, q.ToolCallID)
	mustEqual(t, "second question: tool", answer.Question.Tool, "send")
	mustEqual(t, "second question: expiry", answer.Question.Expires, 0)
	raised, err := fixture.log.ToolQuestion(t.Context(), answer.Seq)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "record of the second question: message", raised.Message, "To Ulm?")
	mustEqual(t, "record of the second question: number of replies", len(raised.Replies), 1)
	mustEqual(t, "record of the second question: index", raised.Index, 1)
	answer = fixture.repeatCall("r3", message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: 2}, providerMessage(`{"approved":true}`))
	r := fixture.snapshot()
	got := r.Entries[2].Message.Content.Text()
	wantEqual(t, "outcome of the call", answer.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "result of the call", got, "a book to Ulm: true")
	if want := []string{"r1/" + q.ToolCallID}; len(keys) != 3 || !slices.Equal(slices.Compact(keys), want) {
		t.Errorf("idempotency keys: got %q, want %q", keys, want)
	}
	n := len(r.Decided)
	mustEqual(t, "number of decisions in the log", n, 2)
	mustEqual(t, "question of the second decision", r.Decided[1].Question, 2)
	wantEqual(t, "kind of the second decision", r.Decided[1].Kind, "answer")
}

// TestToolReceivesOutcomeOfQuestion: a question without an answer is an error of the call. Its
// text says why.
func TestToolReceivesOutcomeOfQuestion(t *testing.T) {
	t.Parallel()
	for kind, want := range map[runs.DecisionKind]string{
		runs.DecisionReject: `The user declined to answer the question. Reason: "x"`,
		runs.DecisionCancel: "The question was cancelled without an answer.",
		runs.DecisionExpire: "The question expired without an answer.",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var keys []string
			fixture, q, message := setupQuestion(t, shopTool(&keys))
			var words *stream.Decision
			if kind == runs.DecisionReject {
				words = &stream.Decision{Reason: "x"}
			}
			fixture.repeatCall("r2", message, q, runs.Decision{Kind: kind, Question: 1}, words)
			result := fixture.snapshot().Entries[2].Message
			if got := result.Content.Text(); got != want || result.Error == "" {
				t.Errorf("result: got %q, want %q", got, want)
			}
		})
	}
}

// TestQuestionsOfToolAreBounded: the number of a tool's questions is bounded.
func TestQuestionsOfToolAreBounded(t *testing.T) {
	t.Parallel()
	n := 0
	fixture, q, message := setupQuestion(t, tools.Func("nag", "Nags.", func(ctx context.Context, _ struct {
		What string `json:"what"`
	}) (string, error) {
		n++
		return tools.Ask[string](ctx, tools.Question{Message: fmt.Sprint("Question ", n)})
	}))
	for i := range tools.MaxQuestions {
		answer := fixture.repeatCall(fmt.Sprint("r", i+2), message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: i + 1}, providerMessage(`"x"`))
		last := i == tools.MaxQuestions-1
		mustEqual(t, fmt.Sprintf("after answer %d: call is complete", i+1), answer.Question == nil, last)
	}
	got := fixture.snapshot().Entries[2].Message.Content.Text()
	if !strings.HasPrefix(got, "The tool asked too many questions.") {
		t.Errorf("result = %q, want prefix %q", got, "The tool asked too many questions.")
	}
}

// TestLegacyInterruptEvents: an agent with legacy interrupts also sends on_interrupt events, with
// the interrupt as a text.
func TestLegacyInterruptEvents(t *testing.T) {
	t.Parallel()
	var keys []string
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", "send", `{"what":"a book"}`})
	}, shopTool(&keys))
	fixture.agent.LegacyInterrupts = true
	fixture.runUntilInterrupt("go")
	shown := fixture.views().Run(run, view.Options{})
	defer shown.Close()
	var before, last json.RawMessage
	for {
		frames, err := shown.Next(t.Context(), time.Minute)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if frames == nil {
			t.Fatal("frames of the stream = nil, want a value")
		}
		for _, frame := range frames {
			before, last = last, frame.Event
		}
	}
	var custom struct{ Name, Value string }
	var asked agui.Interrupt
	err := json.Unmarshal(before, &custom)
	if err == nil {
		err = json.Unmarshal([]byte(custom.Value), &asked)
	}
	q := fixture.snapshot().Interrupts
	if err != nil {
		t.Fatalf("event before %s: %v", last, err)
	}
	wantEqual(t, fmt.Sprintf("event before %s: name", last), custom.Name, "on_interrupt")
	mustEqual(t, fmt.Sprintf("event before %s: number of open interrupts", last), len(q), 1)
	wantEqual(t, fmt.Sprintf("event before %s: ID", last), asked.ID, q[0].ID)
	wantEqual(t, fmt.Sprintf("event before %s: message", last), asked.Message, q[0].Message)
}

// TestRepeatedFinishReturnsTimeOfQuestion: a repeated Finish returns the time at which the
// tool's question was announced. Reminders and the expiry count from then.
func TestRepeatedFinishReturnsTimeOfQuestion(t *testing.T) {
	t.Parallel()
	fixture, q, _ := setupQuestion(t, shopTool(new([]string)))
	source, err := stream.QuestionSourceOf(q)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "question has no time", source.OpenedAt.IsZero(), false)
	in := runs.FinishInput{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: run.ID}, Execution: "e", After: 1, Outcome: runs.OutcomeSuccess}
	got, err := fixture.acts.Finish(t.Context(), in)
	if err != nil || got.Outcome != runs.OutcomeInterrupt || !got.OpenedAt.Equal(source.OpenedAt) {
		t.Errorf("got %+v, %v; want an interrupt announced at %s", got, err, source.OpenedAt)
	}
}
