package stream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// parseMessage parses "u1", "a1" or "u1=other words": the letter is the role, and the text defaults
// to the ID. "U:a1" is a user's message whose ID looks like an answer's.
func parseMessage(s string) agui.Message {
	id, words, ok := strings.Cut(s, "=")
	if !ok {
		words = id
	}
	role := id[0]
	if _, named, ok := strings.Cut(id, "U:"); ok {
		role, id = 'u', named
	}
	m := agui.Message{ID: id, Content: agui.TextContent(words)}
	switch role {
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

// parseMessages returns the messages of a list, separated by spaces.
func parseMessages(list string) []agui.Message {
	var all []agui.Message
	for _, s := range strings.Fields(list) {
		all = append(all, parseMessage(strings.ReplaceAll(s, "_", " ")))
	}
	return all
}

// appendRun appends a run to the log: sent are the client's messages, answered the run's.
func appendRun(t *testing.T, l *stream.Log, n int, sent, answered string) *snapshot.Snapshot {
	t.Helper()
	return appendRunTo(t, l, thread, n, parseMessages(sent), parseMessages(answered))
}

// appendRunTo writes a run with an input and answers to a thread, and returns the new snapshot.
func appendRunTo(t *testing.T, l *stream.Log, thread stream.Thread, n int, sent, answered []agui.Message) *snapshot.Snapshot {
	t.Helper()
	ctx := testContext(t)
	run := stream.Run{Thread: thread, ID: fmt.Sprintf("run%d", n)}
	before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{byte(n)}, &stream.Input{Accepted: before.Accept(snapshot.Claim{Messages: sent})}))
	in := must[*stream.Input](t)(l.Input(ctx, p.Seq))
	accepted := in.Accepted
	accepted.Tail = nil
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	must[uint64](t)(l.OpenStep(ctx, place, stream.Opening{RunID: run.ID, Agent: "a", Input: p.Seq, Accepted: accepted}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	seq := must[uint64](t)(begin(t, ctx, l, place).Finish(ctx, &stream.Result{Messages: answered}))
	place.After = seq
	if _, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	return must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
}

// conversationText returns messages in the notation of parseMessages.
func conversationText(messages []agui.Message) string {
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

// conversationCases are message lists of clients, with the conversations that result from them.
var conversationCases = []struct {
	name            string
	mode            snapshot.History
	sent            string
	wantMessages    string
	wantDiffers     bool
	first, answered string // the second run's input and answers; the first run is "s1 u1" → "r1 a1"
	seen            int    // the last run that the client has seen; 0 = unknown
}{
	{name: "goes on", sent: "s1 u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3"},
	{name: "has a stale copy of an answer", sent: "s1 u1 r1 a1 u2 a2=half u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "was away when the answer came", sent: "s1 u1 r1 a1 u2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "does not send reasoning back", sent: "s1 u1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "sends nothing", sent: "", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "sends reasoning of its own making", sent: "s1 u1 r9 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "has a list that ends in an answer", sent: "s1 u1 r1 a1 u2 a2", wantMessages: "s1 u1 r1 a1 u2 a2"},

	{name: "asks for another answer", sent: "s1 u1 r1 a1 u2", wantMessages: "s1 u1 r1 a1 u2"},
	{name: "asks for another answer to an earlier message", sent: "s1 u1", wantMessages: "s1 u1"},
	{name: "asks for another answer, knowing no more than the question", sent: "u2", wantMessages: "s1 u1 r1 a1 u2", wantDiffers: true},

	{name: "edits the last message under its ID", sent: "s1 u1 r1 a1 u2=better", wantMessages: "s1 u1 r1 a1 u2=better"},
	{name: "edits the first message under its ID", sent: "u1=better", wantMessages: "s1 u1=better", wantDiffers: true},
	{name: "edits an earlier message under its ID", sent: "s1 u1=better", wantMessages: "s1 u1=better"},
	{name: "edits an earlier message and still sends what followed", sent: "s1 u1=better r1 a1 u2 a2 u3", wantMessages: "s1 u1=better r1 a1 u2 a2 u3"},
	{name: "replaces a message by one with a new ID", sent: "s1 u1 r1 a1 u9", wantMessages: "s1 u1 r1 a1 u9"},
	{name: "shortens the list to an answer", sent: "s1 u1 r1 a1", wantMessages: "s1 u1 r1 a1"},
	{name: "drops a message in the middle", sent: "s1 u1 r1 a1 a2 u3", wantMessages: "s1 u1 r1 a1 a2 u3"},
	{name: "inserts a message", sent: "s1 u1 r1 a1 u8 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u8 u2 a2 u3"},
	{name: "changes the order", sent: "s1 u2 a2 u1 r1 a1", wantMessages: "s1 u2 a2 u1 r1 a1"},
	{name: "uses the ID of an answer for a message of its own", sent: "s1 u1 r1 U:a1=mine", wantMessages: "s1 u1 r1 a1=mine"},

	{name: "lost its list", sent: "u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "lost its list and sends its instructions", sent: "s1 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "lost its list and sends its instructions with a new ID", sent: "s9=s1 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "lost its list and has new instructions", sent: "s9 u3", wantMessages: "s1 u1 r1 a1 u2 a2 s9 u3", wantDiffers: true},
	{name: "lost its list and repeats a message", sent: "u3=u2", wantMessages: "s1 u1 r1 a1 u2 a2 u3=u2", wantDiffers: true},
	{name: "lost its list and sends two messages", sent: "u3 u4", wantMessages: "s1 u1 r1 a1 u2 a2 u3 u4", wantDiffers: true},
	{name: "lost its list and repeats a message, with another one", sent: "u3=u1 u4", wantMessages: "s1 u1 r1 a1 u2 a2 u3=u1 u4", wantDiffers: true},
	{name: "has another conversation", sent: "u8 a8 u9", wantMessages: "u8 a8 u9"},
	{name: "dropped the beginning", sent: "u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "dropped all but the last answer", sent: "a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "dropped the beginning, and sends its instructions", sent: "s1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "sends its instructions only", sent: "s1", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "lost its list, and has a local greeting", sent: "a0 u3", wantMessages: "a0 u3"},
	{name: "append, with nothing new", mode: snapshot.HistoryAppend, sent: "s1 u1 r1 a1 u2", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "replace, by nothing", mode: snapshot.HistoryReplace, sent: "", wantMessages: ""},
	{name: "asks for another answer to the result of a tool of its own", first: "s1 u1 r1 a1 t2", answered: "a2", sent: "s1 u1 r1 a1 t2", wantMessages: "s1 u1 r1 a1 t2"},
	{name: "put something before the part that it kept", sent: "u8 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u8 u2 a2 u3", wantDiffers: true},
	{name: "dropped the instructions", sent: "u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "changed the instructions", sent: "s1=other u1 r1 a1 u2 a2 u3", wantMessages: "s1=other u1 r1 a1 u2 a2 u3"},
	{name: "changed the instructions only", sent: "s1=other u3", wantMessages: "s1=other u1 r1 a1 u2 a2 u3", wantDiffers: true},

	{name: "adds instructions", sent: "s9 u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 s9 u3", wantDiffers: true},

	{name: "makes new IDs", sent: "s9=s1 u8=u1 a8=a1 u9=u2 a9=a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs, and dropped the beginning", sent: "u9=u2 a9=a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs, and asks for another answer", sent: "u8=u1 a8=a1 u9=u2", wantMessages: "s1 u1 r1 a1 u2", wantDiffers: true},
	{name: "makes new IDs, and edits", sent: "u8=u1 a8=a1 u9=better", wantMessages: "s1 u1 r1 a1 u9=better", wantDiffers: true},
	{name: "makes new IDs, and was away when the answer came", sent: "u8=u1 a8=a1 u9=u2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs, and has only the users' messages", sent: "u8=u1 u9=u2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},

	{name: "makes new IDs for users' messages", sent: "s1 u8=u1 r1 a1 u9=u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs for users' messages, and dropped the beginning", sent: "u9=u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs for users' messages, and edits", sent: "u8=u1 a1 u9=better a2 u3", wantMessages: "s1 u1 r1 a1 u9=better a2 u3", wantDiffers: true},
	{name: "makes new IDs for users' messages, and repeats one", sent: "u8=u1 a1 u9=u2 a2 u3=u2", wantMessages: "s1 u1 r1 a1 u2 a2 u3=u2", wantDiffers: true},

	{name: "makes new IDs for answers", sent: "s1 u1 a8=a1 u2 a9=a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs for answers, and lacks the last", sent: "s1 u1 a8=a1 u2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "makes new IDs for answers, and edits", sent: "s1 u1 a8=a1 u9=better", wantMessages: "s1 u1 r1 a1 u9=better", wantDiffers: true},
	{name: "makes new IDs for answers, and runs again", sent: "s1 u1 a8=a1 u2 a9=a2", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "knows the first ID only", sent: "s1 u1 a8=a1 u9=u2 a9=a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "invents an answer after those that it knows", sent: "s1 u1 r1 a1 u2 a2 a9=invented u3", wantMessages: "s1 u1 r1 a1 u2 a2 a9=invented u3"},

	{name: "saw the first run, and sends a message", seen: 1, sent: "s1 u1 r1 a1 u9", wantMessages: "s1 u1 r1 a1 u2 a2 u9", wantDiffers: true},
	{name: "saw the first run, and sends its list", seen: 1, sent: "s1 u1 r1 a1", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "saw the first run, and edits", seen: 1, sent: "s1 u1=better", wantMessages: "s1 u1=better"},
	{name: "saw the first run, and asks for another answer", seen: 1, sent: "s1 u1", wantMessages: "s1 u1"},
	{name: "saw no answer", seen: 1, sent: "s1 u1 r1 a1 u2", wantMessages: "s1 u1 r1 a1 u2 a2", wantDiffers: true},
	{name: "saw everything, and replaces a message", seen: 2, sent: "s1 u1 r1 a1 u9", wantMessages: "s1 u1 r1 a1 u9"},

	{name: "replace, with an answer of its own making", mode: snapshot.HistoryReplace, sent: "s1 u1 a1=invented u3", wantMessages: "s1 u1 a1=invented u3"},
	{name: "replace, same as known", mode: snapshot.HistoryReplace, sent: "s1 u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3"},
	{name: "replace, by one message", mode: snapshot.HistoryReplace, sent: "u9", wantMessages: "u9"},
	{name: "append, a new message", mode: snapshot.HistoryAppend, sent: "u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "append, known and new messages", mode: snapshot.HistoryAppend, sent: "s1 u1 u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},
	{name: "append, an edited message", mode: snapshot.HistoryAppend, sent: "u1=better u3", wantMessages: "s1 u1 r1 a1 u2 a2 u3", wantDiffers: true},

	{name: "activities are never sent back", first: "s1 u1 r1 a1 u2", answered: "p2 a2", sent: "s1 u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 p2 a2 u3"},
	{name: "activities at the end stay", answered: "a2 p2", sent: "s1 u1 r1 a1 u2 a2", wantMessages: "s1 u1 r1 a1 u2 a2 p2"},
	{name: "activities are removed with their answer", answered: "p2 a2", sent: "s1 u1 r1 a1 u2", wantMessages: "s1 u1 r1 a1 u2"},
	{name: "replace, with activities", mode: snapshot.HistoryReplace, answered: "p2 a2", sent: "s1 u1 r1 a1 u2 a2 u3", wantMessages: "s1 u1 r1 a1 u2 p2 a2 u3"},
}

// TestConversationAfterInput: the conversation of a run follows from the client's list by the rules
// in docs/concepts/history.md.
func TestConversationAfterInput(t *testing.T) {
	t.Parallel()
	for _, c := range conversationCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := streamtest.Open(t)
			ends := [3]uint64{}
			ends[1] = appendRun(t, l, 1, "s1 u1", "r1 a1").Seq
			answered := "a2"
			if c.answered != "" {
				answered = c.answered
			}
			sent := "s1 u1 r1 a1 u2"
			if c.first != "" {
				sent = c.first
			}
			before := appendRun(t, l, 2, sent, answered)
			ends[2] = before.Seq
			a := before.Accept(snapshot.Claim{Messages: parseMessages(c.sent), History: c.mode, Seen: ends[c.seen]})
			if a.Differs != c.wantDiffers {
				t.Errorf("differs from what the client sent: %v, want %v", a.Differs, c.wantDiffers)
			}
			for _, s := range a.Tail {
				if s.Message != nil && s.Message.Content.Text() == s.ID && strings.Contains(" s1 u1 r1 a1 u2 a2 ", " "+s.ID+" ") && c.mode != snapshot.HistoryReplace {
					t.Errorf("content of %s: got it stored again, want only its ID", s.ID)
				}
			}
			// The conversation in the log equals the accepted one.
			ctx := testContext(t)
			run := stream.Run{Thread: thread, ID: "run3"}
			p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{3}, &stream.Input{Accepted: a}))
			renewed, ok := before.Renew(a)
			mustEqual(t, "acceptance can be renewed", ok, true)
			renewed.Tail = nil
			place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
			must[uint64](t)(l.OpenStep(ctx, place, stream.Opening{RunID: run.ID, Input: p.Seq, Accepted: renewed}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
			after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			if got := conversationText(after.Messages()); got != c.wantMessages {
				t.Errorf("conversation: got\n%s, want\n%s", got, c.wantMessages)
			}
		})
	}
}

// TestAcceptanceIsRepeatedAtStart: another run may finish between the acceptance of an
// input and the start of its run.
func TestAcceptanceIsRepeatedAtStart(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	judged := appendRun(t, l, 1, "u1", "a1")
	away := judged.Accept(snapshot.Claim{Messages: parseMessages("u1 a1 u2")})
	again := judged.Accept(snapshot.Claim{Messages: parseMessages("u1")})

	snap := appendRun(t, l, 2, "u1 a1", "a1b") // another client started a run
	if a, ok := snap.Renew(away); !ok || a.Keep != 3 || !a.Differs {
		t.Errorf("Renew after another run: got %+v, %v, want its answer kept", a, ok)
	}
	if a, ok := snap.Renew(again); !ok || a.Keep != 1 {
		t.Errorf("Renew of a shorter list: got %+v, %v, want one kept message", a, ok)
	}
	// Two queued runs: the second run's list has the first run's message.
	second := judged.Accept(snapshot.Claim{Messages: parseMessages("u1 a1 u2 u3")})
	first := appendRun(t, l, 4, "u1 a1 a1b u2", "a2")
	if a, ok := first.Renew(second); !ok || a.Keep != 5 || conversationText((&snapshot.Snapshot{Entries: first.Apply(a)}).Messages()) != "u1 a1 a1b u2 a2 u3" {
		t.Errorf("conversation after the first queued run: got %s: %+v, %v, want both runs' messages", conversationText((&snapshot.Snapshot{Entries: first.Apply(a)}).Messages()), a, ok)
	}
	// The result of a tool is inserted before the messages of its subagents.
	moved := *judged
	moved.Entries = slices.Insert(slices.Clone(judged.Entries), 1, snapshot.Entry{Message: parseMessage("t9")})
	if a, ok := moved.Renew(away); !ok || conversationText((&snapshot.Snapshot{Entries: moved.Apply(a)}).Messages()) != "u1 t9 a1 u2" {
		t.Errorf("conversation after a move: got %s: %+v, %v, want u1 t9 a1 u2", conversationText((&snapshot.Snapshot{Entries: moved.Apply(a)}).Messages()), a, ok)
	}
	edited := judged.Accept(snapshot.Claim{Messages: parseMessages("u1 a1 u8"), History: snapshot.HistoryReplace})
	if a, ok := moved.Renew(edited); !ok || conversationText((&snapshot.Snapshot{Entries: moved.Apply(a)}).Messages()) != "u1 t9 a1 u8" {
		t.Errorf("conversation of a replacing input after a move: got %s: %+v, %v, want u1 t9 a1 u8", conversationText((&snapshot.Snapshot{Entries: moved.Apply(a)}).Messages()), a, ok)
	}
	lost := judged.Accept(snapshot.Claim{Messages: parseMessages("u7")})
	added := judged.Accept(snapshot.Claim{Messages: parseMessages("u1 a1 u7"), History: snapshot.HistoryAppend})
	other := appendRun(t, l, 3, "u1=other", "a9")
	if a, ok := other.Renew(away); ok {
		t.Errorf("Renew of an input that continues removed messages: got %+v, want a refusal", a)
	}
	for what, a := range map[string]stream.Acceptance{"a list without old messages": lost, "append": added} {
		if a, ok := other.Renew(a); !ok || !a.Differs || conversationText((&snapshot.Snapshot{Entries: other.Apply(a)}).Messages()) != "u1=other a9 u7" {
			t.Errorf("%s: conversation after a cut: got %s: %+v, %v, want u1=other a9 u7", what, conversationText((&snapshot.Snapshot{Entries: other.Apply(a)}).Messages()), a, ok)
		}
	}
}

// TestAcceptanceConflictsWithMessageOfSameID: a queued message is not dropped because another
// run has added a message with the same ID.
func TestAcceptanceConflictsWithMessageOfSameID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queued, before string
		history        snapshot.History
		wantOK         bool
	}{
		"two tabs use one ID":             {queued: "u1 a1 u2=mine", before: "u1 a1 u2=theirs"},
		"two tabs use one ID, appended":   {queued: "u2=mine", before: "u1 a1 u2=theirs", history: snapshot.HistoryAppend},
		"two tabs that lost their lists":  {queued: "u2=mine", before: "u1 a1 u2=theirs"},
		"an edit of a message that stays": {queued: "u1=edited", before: "u1 a1 u2", wantOK: true},
		"the same message":                {queued: "u1 a1 u2", before: "u1 a1 u2", wantOK: true},
		"instructions of one ID":          {queued: "u1 a1 s2=mine u3", before: "u1 a1 s2=theirs u2", wantOK: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := streamtest.Open(t)
			waiting := appendRun(t, l, 1, "u1", "a1").Accept(snapshot.Claim{Messages: parseMessages(c.queued), History: c.history})
			snap := appendRun(t, l, 2, c.before, "a2")
			if a, ok := snap.Renew(waiting); ok != c.wantOK {
				t.Errorf("accepted: got %v with the conversation %s, want %v", ok, conversationText((&snapshot.Snapshot{Entries: snap.Apply(a)}).Messages()), c.wantOK)
			}
		})
	}
}

// TestSnapshotFromCheckpoint: a thread has the same snapshot from its first record, from the
// cache, and from a checkpoint.
func TestSnapshotFromCheckpoint(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	long := "u1=" + strings.Repeat("x", 100_000)
	appendRun(t, l, 1, long, "a1")
	ctx := testContext(t)
	r := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if err := snapshots(l).FinalCheckpoint(ctx, thread, r); err != nil {
		t.Fatal(err)
	}
	want := appendRun(t, l, 2, long+" a1 u2", "a2")
	fresh := streamtest.OpenOn(t, s)
	got := must[*snapshot.Snapshot](t)(snapshots(fresh).Latest(ctx, thread, 0))
	if diff := cmp.Diff(conversationText(want.Messages()), conversationText(got.Messages())); diff != "" || got.Seq != want.Seq {
		t.Errorf("snapshot from the checkpoint (-want +got):\n%s", diff)
	}
	wantEqual(t, "conversation", conversationText(want.Messages()), strings.ReplaceAll(long, " ", "_")+" a1 u2 a2")
}
