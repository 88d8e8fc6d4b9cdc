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

// shop asks where to send things, and whether they may be sent; it notes the keys of its calls.
func shop(keys *[]string) tools.Tool {
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

// raising returns an engine whose run has ended with the tool's first question.
func raising(t *testing.T, tool tools.Tool) (*fixture, agui.Interrupt, string) {
	t.Helper()
	e := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return call([3]string{"x", tool.Spec().Name, `{"what":"a book"}`})
	}, tool)
	e.ask("go")
	r := e.reduction()
	if len(r.Interrupts) != 1 || !r.Sealed || len(r.Entries) != 2 {
		t.Fatalf("the run has asked %+v and left %s", r.Interrupts, asText(t, r.Messages()))
	}
	return e, r.Interrupts[0], r.Entries[1].Message.ID
}

func (e *fixture) reduction() *snapshot.Snapshot {
	e.t.Helper()
	r, err := e.acts.Snapshots.Latest(e.t.Context(), run.Thread, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// lastQuestion returns the record with the question that the last call has raised.
func (e *fixture) lastQuestion() uint64 {
	e.t.Helper()
	for seq := e.reduction().Seq; seq > 0; seq-- {
		if _, err := e.log.ToolQuestion(e.t.Context(), seq); err == nil {
			return seq
		}
	}
	e.t.Fatal("nothing was asked")
	return 0
}

// again makes the call anew in another run, with what was said.
func (e *fixture) again(runID, messageID string, q agui.Interrupt, d runs.Decision, said *stream.Decision) runs.ToolAnswer {
	e.t.Helper()
	if said != nil {
		said.Kind = string(d.Kind)
		d.Input = e.propose(said)
	}
	env := newActivityEnv()
	env.RegisterActivity(e.acts.CallTool)
	d.CallID = q.ToolCallID
	value, err := env.ExecuteActivity(e.acts.CallTool, runs.ToolCall{
		Step: runs.Step{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: runID}, Execution: runID, Agent: "a", Revision: "v", ID: "0/tools/0", Name: "tools"},
		Open: "0/tools", CallID: q.ToolCallID, MessageID: messageID, Decision: &d, Question: e.lastQuestion(), Opens: &runs.Beginning{Continues: run.ID},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	var answer runs.ToolAnswer
	if err := value.Get(&answer); err != nil {
		e.t.Fatal(err)
	}
	return answer
}

func providerMessage(content string) *stream.Decision {
	return &stream.Decision{Content: json.RawMessage(content), Reason: content} // the test's proposals differ by reason
}

// What a tool asks is a question of the run. The call is made anew with all answers there are and
// the key that it had, and each step is done once: the same attempt again asks and does nothing.
func TestAToolAsks(t *testing.T) {
	t.Parallel()
	var keys []string
	e, q, message := raising(t, shop(&keys))
	if q.Reason != "input_required" || q.Message != "Where to?" || string(q.ResponseSchema) != `{"type":"string"}` || q.ExpiresAt == "" || string(q.Metadata["shop"]) != `"s"` {
		t.Errorf("it asks %+v", q)
	}
	if by, err := stream.QuestionSourceOf(q); err != nil || by.Number != 1 || by.Tool != "send" || by.Agent != "a" || by.Revision != "v" {
		t.Errorf("asked by %+v, %v", by, err)
	}
	answer := e.again("r2", message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: 1}, providerMessage(`"Ulm"`))
	if answer.Question == nil || answer.Question.Number != 2 || answer.Question.CallID != q.ToolCallID || answer.Question.Tool != "send" || answer.Question.Expires != 0 {
		t.Fatalf("then it asks %+v", answer.Question)
	}
	raised, err := e.log.ToolQuestion(t.Context(), answer.Seq)
	if err != nil || raised.Message != "To Ulm?" || len(raised.Replies) != 1 || raised.Index != 1 {
		t.Fatalf("then it asks %+v, %v", raised, err)
	}
	answer = e.again("r3", message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: 2}, providerMessage(`{"approved":true}`))
	r := e.reduction()
	if got := r.Entries[2].Message.Content.Text(); answer.Outcome != runs.OutcomeSuccess || got != "a book to Ulm: true" {
		t.Errorf("%+v: the result is %q", answer, got)
	}
	if want := []string{"r1/" + q.ToolCallID}; len(keys) != 3 || !slices.Equal(slices.Compact(keys), want) {
		t.Errorf("the keys of the calls are %q, want %q", keys, want)
	}
	if n := len(r.Decided); n != 2 || r.Decided[1].Question != 2 || r.Decided[1].Kind != "answer" {
		t.Errorf("the log keeps the decisions %+v", r.Decided)
	}
}

func TestAToolHearsWhatCameOfItsQuestion(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[runs.DecisionKind]string{
		runs.DecisionReject: `The person who was asked declined to answer. They said: "x"`,
		runs.DecisionCancel: "Whoever was asked gave no answer.",
		runs.DecisionExpire: "Nobody answered the question in time.",
	} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			var keys []string
			e, q, message := raising(t, shop(&keys))
			var words *stream.Decision
			if verdict == runs.DecisionReject {
				words = &stream.Decision{Reason: "x"}
			}
			e.again("r2", message, q, runs.Decision{Kind: verdict, Question: 1}, words)
			result := e.reduction().Entries[2].Message
			if got := result.Content.Text(); got != want || result.Error == "" {
				t.Errorf("the model is told %q, want %q", got, want)
			}
		})
	}
}

// A tool that asks something else each time is given up.
func TestAToolThatDoesNotStopAsking(t *testing.T) {
	t.Parallel()
	n := 0
	e, q, message := raising(t, tools.Func("nag", "Nags.", func(ctx context.Context, _ struct {
		What string `json:"what"`
	}) (string, error) {
		n++
		return tools.Ask[string](ctx, tools.Question{Message: fmt.Sprint("Question ", n)})
	}))
	for i := range tools.MaxQuestions {
		answer := e.again(fmt.Sprint("r", i+2), message, q, runs.Decision{Kind: runs.DecisionAnswer, Question: i + 1}, providerMessage(`"x"`))
		if last := i == tools.MaxQuestions-1; (answer.Question == nil) != last {
			t.Fatalf("question %d is answered with %+v", i+1, answer)
		}
	}
	if got := e.reduction().Entries[2].Message.Content.Text(); !strings.HasPrefix(got, "The tool asked too many questions.") {
		t.Errorf("the model is told %q", got)
	}
}

// Clients that know only on_interrupt are asked by it as well, if the agent has such: with the
// interrupt as a text.
func TestLegacyClientsAreAsked(t *testing.T) {
	t.Parallel()
	var keys []string
	e := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return call([3]string{"x", "send", `{"what":"a book"}`}) }, shop(&keys))
	e.agent.LegacyInterrupts = true
	e.ask("go")
	shown := e.views().Run(run, view.Options{})
	defer shown.Close()
	var before, last json.RawMessage
	for {
		frames, err := shown.Next(t.Context(), time.Minute)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || frames == nil {
			t.Fatalf("view: %v behind %s", err, last)
		}
		for _, f := range frames {
			before, last = last, f.Event
		}
	}
	var told struct{ Name, Value string }
	var asked agui.Interrupt
	err := json.Unmarshal(before, &told)
	if err == nil {
		err = json.Unmarshal([]byte(told.Value), &asked)
	}
	if q := e.reduction().Interrupts; err != nil || told.Name != "on_interrupt" || len(q) != 1 || asked.ID != q[0].ID || asked.Message != q[0].Message {
		t.Errorf("before %s stands %s (%v)", last, before, err)
	}
}

// A second attempt at the end of a run learns when the tool's question was announced: the times of
// reminders and of the expiry count from then.
func TestFinishAgainTellsWhenAToolAsked(t *testing.T) {
	t.Parallel()
	e, q, _ := raising(t, shop(new([]string)))
	source, err := stream.QuestionSourceOf(q)
	if err != nil || source.AskedAt.IsZero() {
		t.Fatalf("the question is by %+v, %v", source, err)
	}
	in := runs.Finish{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: run.ID}, Execution: "e", After: 1, Outcome: runs.OutcomeSuccess}
	got, err := e.acts.Finish(t.Context(), in)
	if err != nil || got.Outcome != runs.OutcomeInterrupt || !got.AskedAt.Equal(source.AskedAt) {
		t.Errorf("got %+v, %v; want an interrupt announced at %s", got, err, source.AskedAt)
	}
}
