package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

var run = stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r1"}

// agent is the remote agent of all tests, and remoteRun its ID of the run.
const (
	agent     = "afar"
	remoteRun = relay.RunKind + "_1"
)

// own returns the thread's ID of an item that the remote has begun in the run.
func own(id string) string { return remote.NewID(agent, remoteRun, id) }

// lane is the lane of a step whose attempts relay a run.
type lane struct {
	t     *testing.T
	log   *stream.Log
	place stream.Place
}

// newLane opens a run, and returns the lane of its first step.
func newLane(t *testing.T) *lane {
	t.Helper()
	l := streamtest.Open(t)
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
	var err error
	if place.After, err = snapshot.NewStore(l).OpenRun(t.Context(), place, stream.Opening{RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	return &lane{t, l, place}
}

// relayed is a relay with its attempt.
type relayed struct {
	*relay.Relay

	lane    *lane
	attempt *stream.Attempt
}

// relay begins an attempt that relays a run. earlier are the thread's messages before the run.
func (l *lane) relay(earlier []agui.Message, tools ...agui.Tool) *relayed {
	l.t.Helper()
	attempt, done, err := l.log.Begin(l.t.Context(), l.place)
	if err != nil || done != nil {
		l.t.Fatalf("begin: got %v, %v, want an attempt", done, err)
	}
	l.t.Cleanup(attempt.Close)
	in := &agui.RunAgentInput{RunID: remoteRun, Tools: tools}
	known := map[string]string{}
	in.Messages = agui.RenameMessageIDs(earlier, func(id string) string {
		original := remote.OriginalID(agent, id)
		known[original] = id
		return original
	})
	return &relayed{relay.New(attempt, agent, run, in, known), l, attempt}
}

// add adds events, and fails the test if one is refused.
func (r *relayed) add(events ...agui.Event) {
	r.lane.t.Helper()
	for _, e := range events {
		if err := r.Add(r.lane.t.Context(), e); err != nil {
			r.lane.t.Fatalf("%s: %v", e.EventType(), err)
		}
	}
}

// wantWritten checks the events that the attempt has written.
func (r *relayed) wantWritten(want ...agui.Event) {
	r.lane.t.Helper()
	wantEvents(r.lane.t, r.written(), want)
}

// written returns the events that the attempt has written.
func (r *relayed) written() []agui.Event {
	r.lane.t.Helper()
	if err := r.attempt.Flush(r.lane.t.Context()); err != nil {
		r.lane.t.Fatal(err)
	}
	events, err := r.lane.log.AttemptEvents(r.lane.t.Context(), r.lane.place, r.attempt.Writer())
	if err != nil {
		r.lane.t.Fatal(err)
	}
	return events
}

// wantEvents compares events in their encoded form.
func wantEvents(t *testing.T, got, want []agui.Event) {
	t.Helper()
	if diff := cmp.Diff(lines(t, want), lines(t, got)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// lines returns events in their encoded form.
func lines(t *testing.T, events []agui.Event) (lines []string) {
	t.Helper()
	for _, e := range events {
		line, err := agui.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return lines
}

func started() agui.Event  { return &agui.RunStarted{ThreadID: "there", RunID: remoteRun} }
func finished() agui.Event { return &agui.RunFinished{ThreadID: "there", RunID: remoteRun} }

// text returns the events of a text message.
func text(id, text string) []agui.Event {
	return []agui.Event{
		&agui.TextMessageStart{MessageID: id, Role: agui.RoleAssistant},
		&agui.TextMessageContent{MessageID: id, Delta: text},
		&agui.TextMessageEnd{MessageID: id},
	}
}

// call returns the events of a tool call in a message.
func call(id, tool, message string) []agui.Event {
	return []agui.Event{
		&agui.ToolCallStart{ToolCallID: id, ToolCallName: tool, ParentMessageID: message},
		&agui.ToolCallArgs{ToolCallID: id, Delta: "{}"},
		&agui.ToolCallEnd{ToolCallID: id},
	}
}

// TestIDs: the items of a run get IDs of the thread's, items of earlier runs keep theirs, and the
// events of the run's lifecycle are not written.
func TestIDs(t *testing.T) {
	t.Parallel()
	before := remote.NewID(agent, "r0", "c0")
	r := newLane(t).relay([]agui.Message{
		{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("Hello")},
		{ID: remote.NewID(agent, "r0", "m0"), Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: before, Name: "add"}}},
	})
	r.add(started(), &agui.StepStarted{StepName: "think"})
	r.add(text("m1", "Hi")...)
	r.add(call("c1", "add", "m1")...)
	r.add(&agui.ToolCallResult{MessageID: "m2", ToolCallID: "c0", Content: agui.TextContent("2")}, &agui.StepFinished{StepName: "think"}, finished())
	var want []agui.Event
	want = append(want, &agui.StepStarted{StepName: agent + "/think"})
	want = append(want, text(own("m1"), "Hi")...)
	want = append(want, call(own("c1"), "add", own("m1"))...)
	want = append(want, &agui.ToolCallResult{MessageID: own("m2"), ToolCallID: before, Content: agui.TextContent("2")}, &agui.StepFinished{StepName: agent + "/think"})
	r.wantWritten(want...)
	if got := r.ClosingEvents(); len(got) > 0 {
		t.Errorf("Close = %v, want no events: the run has closed everything", got)
	}
	if got := remote.OriginalID(agent, r.AnswerID()); got != "m1" {
		t.Errorf("AnswerID is that of %q, want m1", got)
	}
}

// TestReusedIDs: a remote that numbers the messages of each run from 1 begins new messages and calls,
// although the thread has some with the same IDs.
func TestReusedIDs(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay([]agui.Message{
		{ID: remote.NewID(agent, "r0", "1"), Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: remote.NewID(agent, "r0", "c1"), Name: "add"}}},
		{ID: remote.NewID(agent, "r0", "2"), Role: agui.RoleTool, ToolCallID: remote.NewID(agent, "r0", "c1")},
	})
	r.add(started())
	r.add(&agui.ReasoningStart{MessageID: "1"}, &agui.ReasoningEnd{MessageID: "1"})
	r.add(call("c1", "add", "1")...)
	r.add(&agui.ToolCallResult{MessageID: "2", ToolCallID: "c1", Content: agui.TextContent("2")})
	r.add(text("2", "Two")...)
	r.add(finished())
	for _, line := range lines(t, r.written()) {
		if strings.Contains(line, remote.NewID(agent, "r0", "")) {
			t.Errorf("event = %s, want only IDs of this run", line)
		}
	}
}

// ofSubagent returns the thread's ID of a subagent that the remote has begun in the attempt, or of an item
// of one.
func (r *relayed) ofSubagent(id string) string {
	return remote.NewID(agent, remoteRun+"/"+r.attempt.Writer(), id)
}

// TestSubagents: each attempt gives subagents and their items other IDs, also those that it repeats.
// Clients accept the stream of both attempts.
func TestSubagents(t *testing.T) {
	t.Parallel()
	l := newLane(t)
	events := func() []agui.Event {
		return []agui.Event{
			started(), &agui.SubagentStarted{SubagentRunID: "s1", Name: "scout"},
			&agui.TextMessageStart{MessageID: "m1", Role: agui.RoleAssistant, SubagentRunID: "s1"}, &agui.TextMessageContent{MessageID: "m1", Delta: "Hi"},
			&agui.TextMessageEnd{MessageID: "m1"}, &agui.SubagentFinished{SubagentRunID: "s1"},
			&agui.TextMessageStart{MessageID: "m2", Role: agui.RoleAssistant}, &agui.TextMessageEnd{MessageID: "m2"}, finished(),
		}
	}
	var verifier agui.Verifier
	check := func(events ...agui.Event) {
		t.Helper()
		for _, e := range events {
			if err := verifier.Check(e); err != nil {
				t.Error(err)
			}
		}
	}
	for n := 1; n < len(events()); n++ {
		first := l.relay(nil)
		first.add(events()[:n]...)
		progress, err := first.Progress("id-1")
		if err != nil {
			t.Fatal(err)
		}
		written := first.written()
		verifier = agui.Verifier{}
		check(append([]agui.Event{started()}, written...)...)
		check(first.ClosingEvents()...) // the view closes the same of a retracted attempt
		for _, continues := range []bool{true, false} {
			second, rest := l.relay(nil), events()
			if continues {
				if err := second.Repeat(t.Context(), progress, written); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			second.add(rest...)
			check(second.written()...)
			second.wantWritten(
				&agui.SubagentStarted{SubagentRunID: second.ofSubagent("s1"), Name: "scout"},
				&agui.TextMessageStart{MessageID: second.ofSubagent("m1"), Role: agui.RoleAssistant, SubagentRunID: second.ofSubagent("s1")},
				&agui.TextMessageContent{MessageID: second.ofSubagent("m1"), Delta: "Hi"}, &agui.TextMessageEnd{MessageID: second.ofSubagent("m1")},
				&agui.SubagentFinished{SubagentRunID: second.ofSubagent("s1")},
				&agui.TextMessageStart{MessageID: own("m2"), Role: agui.RoleAssistant}, &agui.TextMessageEnd{MessageID: own("m2")})
		}
	}
}

// TestReplayedRuns: runs of a response before the requested one are skipped, also their errors and
// interrupts. A remote that chooses the IDs of its runs is not mistaken for such a replay.
func TestReplayedRuns(t *testing.T) {
	t.Parallel()
	replay := []agui.Event{&agui.RunStarted{RunID: relay.RunKind + "_0"}}
	replay = append(replay, text("m0", "Earlier")...)
	replay = append(replay, &agui.Custom{Name: "on_interrupt", Value: json.RawMessage(`{"id":"i0","message":"Sure?"}`)})
	for name, c := range map[string]struct {
		before []agui.Event
		runID  string
	}{
		"finished":    {append(slices.Clone(replay), &agui.RunFinished{Usage: []agui.TokenUsage{{Model: "old"}}}), remoteRun},
		"failed":      {append(slices.Clone(replay), &agui.RunError{Code: "OLD", Message: "no"}), remoteRun},
		"its own IDs": {nil, "run-of-the-remote"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLane(t).relay(nil)
			r.add(c.before...)
			r.add(&agui.RunStarted{RunID: c.runID})
			r.add(text("m1", "Now")...)
			r.add(&agui.RunFinished{RunID: c.runID})
			r.wantWritten(text(own("m1"), "Now")...)
			if asked, usage := r.Interrupts(), r.Usage(); len(asked)+len(usage) > 0 {
				t.Errorf("interrupts %v and usage %v, want none of the replayed run", asked, usage)
			}
		})
	}
}

// TestSnapshot: of a snapshot, clients see the messages that they do not have yet.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay([]agui.Message{
		{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("Hello")},
		{ID: remote.NewID(agent, "r0", "m0"), Role: agui.RoleAssistant, Content: agui.TextContent("Earlier")},
	})
	r.add(started())
	r.add(text("m1", "Now")...)
	before := len(r.written())
	r.add(&agui.MessagesSnapshot{Messages: []agui.Message{
		{ID: "sys", Role: agui.RoleSystem, Content: agui.TextContent("Be brief.")},
		{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("Hello")},
		{ID: "m0", Role: agui.RoleAssistant, Content: agui.TextContent("Earlier")},
		{ID: "m1", Role: agui.RoleAssistant, Content: agui.TextContent("Now")},
		{ID: "m2", Role: agui.RoleAssistant, Content: agui.TextContent("Then"), ToolCalls: []agui.ToolCall{{ID: "c2", Name: "add", Arguments: "{}"}}},
		{ID: "m3", Role: agui.RoleTool, ToolCallID: "c2", Content: agui.TextContent("3")},
		{ID: "m4", Role: agui.RoleReasoning, Content: agui.TextContent("Hm.")},
	}}, finished())
	want := append(text(own("m2"), "Then"), call(own("c2"), "add", own("m2"))...)
	want = append(want, &agui.ToolCallResult{MessageID: own("m3"), ToolCallID: own("c2"), Content: agui.TextContent("3")},
		&agui.ReasoningStart{MessageID: own("m4")}, &agui.ReasoningMessageStart{MessageID: own("m4")},
		&agui.ReasoningMessageContent{MessageID: own("m4"), Delta: "Hm."}, &agui.ReasoningMessageEnd{MessageID: own("m4")}, &agui.ReasoningEnd{MessageID: own("m4")})
	wantEvents(t, r.written()[before:], want)
	var ids []string
	for _, m := range r.Messages() {
		ids = append(ids, remote.OriginalID(agent, m.ID))
	}
	if want := []string{"m1", "m2", "m3", "m4"}; !slices.Equal(ids, want) {
		t.Errorf("messages of the run = %q, want %q", ids, want)
	}
}

// TestCancelledRun: a run that is cut closes what it has opened, the last opened item first. An event
// that the attempt has refused is not lost.
func TestCancelledRun(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay(nil)
	r.add(started(), &agui.StepStarted{StepName: "s"}, &agui.SubagentStarted{SubagentRunID: "sub", Name: "helper"},
		&agui.TextMessageStart{MessageID: "m1", Role: agui.RoleAssistant}, &agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "add"},
		&agui.ReasoningStart{MessageID: "m2"}, &agui.ReasoningMessageStart{MessageID: "m2"})
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(stream.ErrCancelled)
	if err := r.Add(ended, &agui.TextMessageContent{MessageID: "m1", Delta: "last"}); !errors.Is(err, stream.ErrCancelled) {
		t.Fatalf("after the cancel: %v, want ErrCancelled", err)
	}
	wantEvents(t, r.ClosingEvents(), []agui.Event{
		&agui.TextMessageContent{MessageID: own("m1"), Delta: "last"},
		&agui.ReasoningMessageEnd{MessageID: own("m2")}, &agui.ReasoningEnd{MessageID: own("m2")}, &agui.ToolCallEnd{ToolCallID: own("c1")},
		&agui.TextMessageEnd{MessageID: own("m1")}, &agui.SubagentFinished{SubagentRunID: r.ofSubagent("sub")}, &agui.StepFinished{StepName: agent + "/s"},
	})
	if got := r.Messages()[0]; got.Content.Text() != "last" {
		t.Errorf("message = %+v, want its whole text", got)
	}
}

// TestRunError: the error of a remote run ends the relay.
func TestRunError(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay(nil)
	r.add(started())
	err := r.Add(t.Context(), &agui.RunError{Code: "OVERLOADED", Message: "too much"})
	if failed, ok := errors.AsType[*relay.RunError](err); !ok || failed.Code != "OVERLOADED" || failed.Message != "too much" {
		t.Errorf("got %v, want the remote's error", err)
	}
}

// TestTextOfRunErrorHasNoContent: the text of a failed run has the remote's code only if it is an identifier,
// and never the remote's message.
func TestTextOfRunErrorHasNoContent(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"OVERLOADED":                   "the remote agent has sent RUN_ERROR with the code OVERLOADED",
		"":                             "the remote agent has sent RUN_ERROR",
		"Ann's card 4111 was declined": "the remote agent has sent RUN_ERROR",
		strings.Repeat("a", 65):        "the remote agent has sent RUN_ERROR",
	} {
		if got := (&relay.RunError{Code: code, Message: "too much"}).Error(); got != want {
			t.Errorf("code %.40q: text = %q, want %q", code, got, want)
		}
	}
}

// TestUsage: the usage of the last RUN_FINISHED is that of the run.
func TestUsage(t *testing.T) {
	t.Parallel()
	count := func(n int64) *int64 { return &n }
	r := newLane(t).relay(nil)
	if got := r.Usage(); got != nil {
		t.Errorf("before the end: %v, want none", got)
	}
	r.add(started(), &agui.RunFinished{RunID: remoteRun, Usage: []agui.TokenUsage{
		{Provider: "openai", Model: "m", InputTokens: count(3), OutputTokens: count(4), TotalTokens: count(7), CachedInputTokens: count(1)},
		{Model: "other"},
	}})
	got := r.Usage()
	if len(got) != 2 || got[0].Provider != "openai" || got[0].Model != "m" || *got[0].Input != 3 || *got[0].Output != 4 || *got[0].Total != 7 || *got[0].CachedInput != 1 || got[0].Calls != 1 || got[1].Model != "other" {
		t.Errorf("usage = %+v", got)
	}
}

// TestClientCalls: the calls that wait for the client are those of offered tools without a result and
// without an interrupt.
func TestClientCalls(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay([]agui.Message{{ID: remote.NewID(agent, "r0", "m0"), Role: agui.RoleAssistant,
		ToolCalls: []agui.ToolCall{{ID: remote.NewID(agent, "r0", "c0"), Name: "show"}}}}, agui.Tool{Name: "show"})
	r.add(started())
	r.add(call("first", "show", "m1")...)
	r.add(call("answered", "show", "m2")...)
	r.add(call("own", "search", "m2")...)
	r.add(call("asked", "show", "m2")...)
	r.add(call("open", "show", "m2")...)
	r.add(call("open2", "show", "m2")...)
	r.add(&agui.ToolCallResult{MessageID: "m3", ToolCallID: "answered", Content: agui.TextContent("done")},
		&agui.RunFinished{RunID: remoteRun, Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i", Reason: "r", ToolCallID: "asked"}}}})
	message, calls := r.ClientCalls()
	if message != own("m2") || len(calls) != 2 || calls[0].ID != own("open") || calls[1].ID != own("open2") {
		t.Errorf("ClientCalls = %s %+v, want open and open2 of m2", message, calls)
	}
	if got := r.AnswerID(); got != "" {
		t.Errorf("AnswerID = %s, want none: no message has text", got)
	}
}

// TestRepeatedCall: a call that waits for its result since an earlier run is not begun again, and gets its
// result. A call that has one is another call with the same ID.
func TestRepeatedCall(t *testing.T) {
	t.Parallel()
	asking := remote.NewID(agent, "r0", "m0")
	before := func(id string) string { return remote.NewID(agent, "r0", id) }
	r := newLane(t).relay([]agui.Message{
		{ID: asking, Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: before("c1"), Name: "add"}, {ID: before("c2"), Name: "add"}}},
		{ID: before("m1"), Role: agui.RoleTool, ToolCallID: before("c2")},
	})
	r.add(started())
	r.add(call("c1", "add", "")...)
	r.add(&agui.ToolCallResult{MessageID: "m2", ToolCallID: "c1", Content: agui.TextContent("2")})
	r.add(call("c2", "add", "m3")...)
	r.add(finished())
	r.wantWritten(append([]agui.Event{&agui.ToolCallResult{MessageID: own("m2"), ToolCallID: before("c1"), Content: agui.TextContent("2")}}, call(own("c2"), "add", own("m3"))...)...)
}
