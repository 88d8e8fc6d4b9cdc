package stream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// msg reads "u1", "a1" or "u1=other words": the letter is the role, the words default to the id.
func msg(s string) agui.Message {
	id, words, ok := strings.Cut(s, "=")
	if !ok {
		words = id
	}
	m := agui.Message{ID: id, Content: agui.TextContent(words)}
	switch id[0] {
	case 'u':
		m.Role = agui.RoleUser
	case 's':
		m.Role = agui.RoleSystem
	case 'a':
		m.Role = agui.RoleAssistant
	case 'r':
		m.Role = agui.RoleReasoning
	case 'p':
		m.Role, m.ActivityType, m.Content = agui.RoleActivity, "plan", agui.ObjectContent([]byte(`{}`))
	case 't':
		m.Role, m.ToolCallID = agui.RoleTool, "call"
	}
	return m
}

func msgs(list string) []agui.Message {
	var all []agui.Message
	for _, s := range strings.Fields(list) {
		all = append(all, msg(strings.ReplaceAll(s, "_", " ")))
	}
	return all
}

// write puts runs into a log: "u1 | a1" is a run whose client sent u1 and which answered a1.
func write(t *testing.T, l *stream.Log, n int, sent, answered string) *stream.Reduction {
	t.Helper()
	return writeOn(t, l, thread, n, msgs(sent), msgs(answered))
}

func writeOn(t *testing.T, l *stream.Log, thread stream.Thread, n int, sent, answered []agui.Message) *stream.Reduction {
	t.Helper()
	ctx := testContext(t)
	run := stream.Run{Thread: thread, ID: fmt.Sprintf("run%d", n)}
	before := must[*stream.Reduction](t)(l.Reduce(ctx, thread, 0))
	p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{byte(n)}, &stream.Input{Accepted: before.Accept(sent, "")}))
	in := must[*stream.Input](t)(l.Input(ctx, p.Seq))
	accepted := in.Accepted
	accepted.Tail = nil
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	must[uint64](t)(l.Open(ctx, place, stream.Opening{RunID: run.ID, Agent: "a", Input: p.Seq, Accepted: accepted}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	seq := must[uint64](t)(begin(t, ctx, l, place).Finish(ctx, &stream.Result{Messages: answered}))
	place.After = seq
	if _, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	return must[*stream.Reduction](t)(l.Reduce(ctx, thread, 0))
}

func words(messages []agui.Message) string {
	var all []string
	for _, m := range messages {
		s := m.ID
		if text := m.Content.Text(); m.Role != agui.RoleActivity && text != m.ID {
			s += "=" + strings.ReplaceAll(text, " ", "_")
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func TestConversationRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		mode            stream.History
		sent            string
		want            string
		differs         bool
		first, answered string // of the thread's second run; the first is "s1 u1" → "r1 a1"
	}{
		{name: "goes on", sent: "s1 u1 r1 a1 u2 a2 u3", want: "s1 u1 r1 a1 u2 a2 u3"},
		{name: "sends only what is new to a thread it doesn't know", mode: stream.HistoryAppend, sent: "u3", want: "s1 u1 r1 a1 u2 a2 u3", differs: true},
		{name: "has a stale copy of an answer", sent: "s1 u1 r1 a1 u2 a2=half u3", want: "s1 u1 r1 a1 u2 a2 u3", differs: true},
		{name: "was away when the answer came", sent: "s1 u1 r1 a1 u2 u3", want: "s1 u1 r1 a1 u2 a2 u3", differs: true},
		{name: "does not send reasoning back", sent: "s1 u1 a1 u2 a2 u3", want: "s1 u1 r1 a1 u2 a2 u3", differs: true},
		{name: "asks for another answer", sent: "s1 u1 r1 a1 u2", want: "s1 u1 r1 a1 u2"},
		{name: "asks for another answer to an earlier message", sent: "s1 u1", want: "s1 u1"},
		{name: "edits the last message under its id", sent: "s1 u1 r1 a1 u2=better", want: "s1 u1 r1 a1 u2=better"},
		{name: "edits an earlier message under its id", sent: "s1 u1=better", want: "s1 u1=better"},
		{name: "edits an earlier message and still sends what followed", sent: "s1 u1=better r1 a1 u2 a2 u3", want: "s1 u1=better r1 a1 u2 a2 u3"},
		{name: "replaces a message by one with a new id", sent: "s1 u1 r1 a1 u9", want: "s1 u1 r1 a1 u9"},
		{name: "shortens the history to an answer", sent: "s1 u1 r1 a1", want: "s1 u1 r1 a1"},
		{name: "drops a message in the middle", sent: "s1 r1 a1 u2 a2 u3", want: "s1 r1 a1 u2 a2 u3"},
		{name: "drops the system message", sent: "u1 r1 a1 u2 a2 u3", want: "u1 r1 a1 u2 a2 u3"},
		{name: "sends nothing", sent: "", want: "s1 u1 r1 a1 u2 a2", differs: true},
		{name: "starts anew", sent: "u9", want: "u9"},
		{name: "literally, with an answer of its own making", mode: stream.HistoryComplete, sent: "s1 u1 a1=invented u3", want: "s1 u1 a1=invented u3"},
		{name: "literally, same as known", mode: stream.HistoryComplete, sent: "s1 u1 r1 a1 u2 a2 u3", want: "s1 u1 r1 a1 u2 a2 u3"},
		{name: "appends what is known and new", mode: stream.HistoryAppend, sent: "s1 u1 u3", want: "s1 u1 r1 a1 u2 a2 u3", differs: true},
		{name: "activities are never sent back", first: "s1 u1 r1 a1 u2", answered: "p2 a2", sent: "s1 u1 r1 a1 u2 a2 u3", want: "s1 u1 r1 a1 u2 p2 a2 u3"},
		{name: "activities at the end are not asked to go", answered: "a2 p2", sent: "s1 u1 r1 a1 u2 a2", want: "s1 u1 r1 a1 u2 a2 p2"},
		{name: "activities go with the answer that they belong to", answered: "p2 a2", sent: "s1 u1 r1 a1 u2", want: "s1 u1 r1 a1 u2"},
		{name: "literally, with activities", mode: stream.HistoryComplete, answered: "p2 a2", sent: "s1 u1 r1 a1 u2 a2 u3", want: "s1 u1 r1 a1 u2 p2 a2 u3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := streamtest.Open(t)
			write(t, l, 1, "s1 u1", "r1 a1")
			answered := "a2"
			if c.answered != "" {
				answered = c.answered
			}
			before := write(t, l, 2, "s1 u1 r1 a1 u2", answered)
			a := before.Accept(msgs(c.sent), c.mode)
			if a.Differs != c.differs {
				t.Errorf("differs from what the client sent: %v, want %v", a.Differs, c.differs)
			}
			for _, s := range a.Tail {
				if s.Message != nil && strings.Contains(" s1 u1 r1 a1 u2 a2 ", " "+s.Message.Content.Text()+" ") && c.mode != stream.HistoryComplete {
					t.Errorf("the content of %s is stored again", s.ID)
				}
			}
			// What the log then says is the same as what was judged.
			ctx := testContext(t)
			run := stream.Run{Thread: thread, ID: "run3"}
			p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{3}, &stream.Input{Accepted: a}))
			renewed, ok := before.Renew(a)
			if !ok {
				t.Fatal("the acceptance does not hold although nothing changed")
			}
			renewed.Tail = nil
			place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
			must[uint64](t)(l.Open(ctx, place, stream.Opening{RunID: run.ID, Input: p.Seq, Accepted: renewed}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
			after := must[*stream.Reduction](t)(l.Reduce(ctx, thread, 0))
			if got := words(after.Messages()); got != c.want {
				t.Errorf("the conversation is\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// Between judging an input and starting its run another run may have gone on.
func TestAcceptanceIsJudgedAgainWhenTheRunStarts(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	judged := write(t, l, 1, "u1", "a1")
	away := judged.Accept(msgs("u1 a1 u2"), "")
	again := judged.Accept(msgs("u1"), "")

	now := write(t, l, 2, "u1 a1", "a1b") // another client asked to go on
	if a, ok := now.Renew(away); !ok || a.Keep != 3 || !a.Differs {
		t.Errorf("the answer that came meanwhile is not kept: %+v, %v", a, ok)
	}
	if a, ok := now.Renew(again); !ok || a.Keep != 1 {
		t.Errorf("what the client cut is back: %+v, %v", a, ok)
	}
	// Two runs that waited: the second brings what the first has said already.
	second := judged.Accept(msgs("u1 a1 u2 u3"), "")
	first := write(t, l, 4, "u1 a1 a1b u2", "a2")
	if a, ok := first.Renew(second); !ok || a.Keep != 5 || words(first.Apply(a)) != "u1 a1 a1b u2 a2 u3" {
		t.Errorf("behind the run before it, the conversation is %s: %+v, %v", words(first.Apply(a)), a, ok)
	}
	cut := write(t, l, 3, "u1=other", "a9")
	if a, ok := cut.Renew(away); ok {
		t.Errorf("an input that builds on what was cut is accepted: %+v", a)
	}
}

// A thread reduces to the same whether from its beginning, from the cache, or from a checkpoint.
func TestReductionFromACheckpoint(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	long := "u1=" + strings.Repeat("x", 100_000)
	write(t, l, 1, long, "a1")
	ctx := testContext(t)
	r := must[*stream.Reduction](t)(l.Reduce(ctx, thread, 0))
	if err := l.Checkpoint(ctx, thread, r, true); err != nil {
		t.Fatal(err)
	}
	want := write(t, l, 2, long+" a1 u2", "a2")
	fresh := streamtest.OpenOn(t, s)
	got := must[*stream.Reduction](t)(fresh.Reduce(ctx, thread, 0))
	if diff := cmp.Diff(words(want.Messages()), words(got.Messages())); diff != "" || got.Seq != want.Seq {
		t.Errorf("reduction from the checkpoint differs (-want +got):\n%s", diff)
	}
	if words(want.Messages()) != strings.ReplaceAll(long, " ", "_")+" a1 u2 a2" {
		t.Errorf("the conversation is %.80s…", words(want.Messages()))
	}
}
