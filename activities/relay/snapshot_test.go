package relay_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// assistant returns a message with calls of the tool add.
func assistant(id, text string, calls ...agui.ToolCall) agui.Message {
	for i := range calls {
		calls[i].Name = "add"
	}
	return agui.Message{ID: id, Role: agui.RoleAssistant, Content: agui.TextContent(text), ToolCalls: calls}
}

// TestRestatement: a snapshot that differs from what the run has streamed is written with the run's
// messages, and replaces them. Results keep their IDs.
func TestRestatement(t *testing.T) {
	t.Parallel()
	user := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("Hello")}
	result := func(id, call string) agui.Message {
		return agui.Message{ID: id, Role: agui.RoleTool, ToolCallID: call, Content: agui.TextContent("3")}
	}
	added := func(id string) agui.Event {
		return &agui.ToolCallResult{MessageID: id, ToolCallID: "c1", Content: agui.TextContent("3")}
	}
	begun := []agui.Event{&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "add", ParentMessageID: "m1"}, &agui.ToolCallEnd{ToolCallID: "c1"}}
	for name, c := range map[string]struct {
		streamed []agui.Event
		snapshot []agui.Message
		want     []agui.Message // nil = no snapshot is written
		moves    bool           // an empty one precedes it
		changed  map[string]string
	}{
		"the same": {
			streamed: append(call("c1", "add", "m1"), added("m2")),
			snapshot: []agui.Message{user, assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: " {\n}"}), result("m2", "c1")},
		},
		"another ID of a result": {
			streamed: append(call("c1", "add", "m1"), added("random")),
			snapshot: []agui.Message{user, assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: "{}"}), result("m2", "c1")},
			changed:  map[string]string{own("random"): "m2"},
		},
		"a call in another message": {
			streamed: slices.Concat(text("m1", "Let me add."), call("c1", "add", "m2"), []agui.Event{added("random")}),
			snapshot: []agui.Message{user, assistant("m1", "Let me add.", agui.ToolCall{ID: "c1", Arguments: "{}"}), result("m2", "c1")},
			want:     []agui.Message{assistant("m1", "Let me add.", agui.ToolCall{ID: "c1", Arguments: "{}"}), result("random", "c1")},
			changed:  map[string]string{own("random"): "m2"},
		},
		"arguments and a call that were not streamed": {
			streamed: begun,
			snapshot: []agui.Message{user, assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: `{"n":1}`}, agui.ToolCall{ID: "c2", Arguments: `{"n":2}`})},
			want:     []agui.Message{assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: `{"n":1}`}, agui.ToolCall{ID: "c2", Arguments: `{"n":2}`})},
		},
		"messages before those that were streamed": {
			streamed: text("m3", "Three"),
			snapshot: []agui.Message{user, assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: "{}"}), result("m2", "c1"), assistant("m3", "Three")},
			want:     []agui.Message{assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: "{}"}), result("m2", "c1"), assistant("m3", "Three")},
			moves:    true,
		},
		"a message that is taken back": {
			streamed: append(text("m1", "Hel"), text("m2", "Hello")...),
			snapshot: []agui.Message{user, assistant("m2", "Hello")},
			want:     []agui.Message{assistant("m2", "Hello")},
		},
		"messages of a run that the thread does not have": {
			streamed: text("m1", "Now"),
			snapshot: []agui.Message{assistant("lost", "Failed"), user, assistant("m1", "Now")},
		},
		"other IDs of the input": {
			streamed: text("m1", "Now"),
			snapshot: []agui.Message{assistant("there-1", "Earlier"), {ID: "there-2", Role: agui.RoleUser, Content: agui.TextContent("Hello")}, assistant("m1", "Now")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLane(t).relay([]agui.Message{user}, agui.Tool{Name: "add"})
			r.add(started())
			r.add(c.streamed...)
			before := r.Messages()
			n := len(r.written())
			r.add(&agui.MessagesSnapshot{Messages: c.snapshot}, finished())
			if diff := cmp.Diff(c.changed, r.ChangedIDs()); diff != "" {
				t.Errorf("IDs that the remote has changed (-want +got):\n%s", diff)
			}
			if c.want == nil {
				wantEvents(t, r.written()[n:], nil)
				if diff := cmp.Diff(before, r.Messages(), cmp.AllowUnexported(agui.Content{})); diff != "" {
					t.Errorf("messages after the snapshot (-before +after):\n%s", diff)
				}
				return
			}
			want := agui.RenameMessageIDs(c.want, own)
			events := []agui.Event{&agui.MessagesSnapshot{Messages: want}}
			if c.moves {
				events = append([]agui.Event{&agui.MessagesSnapshot{}}, events...)
			}
			wantEvents(t, r.written()[n:], events)
			if diff := cmp.Diff(want, r.Messages(), cmp.AllowUnexported(agui.Content{})); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCallsOfSnapshot: calls of the client's tools that only a snapshot has are left to the client.
func TestCallsOfSnapshot(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay(nil, agui.Tool{Name: "add"})
	r.add(started())
	r.add(call("c1", "add", "m1")...)
	r.add(&agui.MessagesSnapshot{Messages: []agui.Message{assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: "{}"}, agui.ToolCall{ID: "c2", Arguments: "{}"})}}, finished())
	message, calls := r.ClientCalls()
	var ids []string
	for _, c := range calls {
		ids = append(ids, remote.OriginalID(agent, c.ID))
	}
	if want := []string{"c1", "c2"}; message != own("m1") || !slices.Equal(ids, want) {
		t.Errorf("calls of the client = %q in %q, want %q in %q", ids, message, want, own("m1"))
	}
}

// TestRepeatedState: a snapshot of the state that changes nothing is written once. The first one of a run is
// written in any case: the relay does not know the state before.
func TestRepeatedState(t *testing.T) {
	t.Parallel()
	state := func(value string) agui.Event { return &agui.StateSnapshot{Snapshot: json.RawMessage(value)} }
	r := newLane(t).relay(nil)
	r.add(started(), state("{}"), state("{}"), state(`{"n":1}`), state(`{"n":1}`), &agui.StateDelta{Delta: json.RawMessage(`[{"op":"replace","path":"/n","value":2}]`)}, state(`{"n":1}`), finished())
	r.wantWritten(state("{}"), state(`{"n":1}`), &agui.StateDelta{Delta: json.RawMessage(`[{"op":"replace","path":"/n","value":2}]`)}, state(`{"n":1}`))
}

// TestRawEvents: the events of the remote's framework are not written.
func TestRawEvents(t *testing.T) {
	t.Parallel()
	r := newLane(t).relay(nil)
	raw := agui.BaseEvent{RawEvent: json.RawMessage(`{"prompt":"secret"}`)}
	r.add(started(), &agui.Raw{Event: json.RawMessage(`{"prompt":"secret"}`)}, &agui.TextMessageStart{BaseEvent: raw, MessageID: "m1", Role: agui.RoleAssistant},
		&agui.Custom{BaseEvent: raw, Name: "on_interrupt", Value: json.RawMessage(`"Sure?"`)}, &agui.TextMessageEnd{MessageID: "m1"}, finished())
	r.wantWritten(&agui.TextMessageStart{MessageID: own("m1"), Role: agui.RoleAssistant},
		&agui.Custom{Name: "on_interrupt", Value: json.RawMessage(`"Sure?"`)}, &agui.TextMessageEnd{MessageID: own("m1")})
}

// TestChangedIDsAreContinued: an attempt that continues a run knows the IDs that the remote has changed before.
func TestChangedIDsAreContinued(t *testing.T) {
	t.Parallel()
	l := newLane(t)
	first := l.relay(nil)
	first.add(started())
	first.add(call("c1", "add", "m1")...)
	first.add(&agui.ToolCallResult{MessageID: "random", ToolCallID: "c1", Content: agui.TextContent("3")},
		&agui.MessagesSnapshot{Messages: []agui.Message{
			assistant("m1", "", agui.ToolCall{ID: "c1", Arguments: "{}"}), {ID: "m2", Role: agui.RoleTool, ToolCallID: "c1", Content: agui.TextContent("3")},
		}})
	progress, err := first.Progress("id-7")
	if err != nil {
		t.Fatal(err)
	}
	written := first.written()
	second := l.relay(nil)
	if err := second.Repeat(t.Context(), progress, written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{own("random"): "m2"}, second.ChangedIDs()); diff != "" {
		t.Errorf("IDs that the remote has changed (-want +got):\n%s", diff)
	}
}
