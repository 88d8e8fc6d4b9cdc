package agui

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stream, want string }{
		"text":                          {"tc m; tc -; fin", "S m; C m; C m; E m; RUN_FINISHED"},
		"tool call":                     {"cc c<f; cc -; cc c<f; fin", "TS c; TA c; TA c; TA c; TE c; RUN_FINISHED"},
		"reasoning":                     {"rc r; rc r; err", "RMS r; RMC r; RMC r; RME r; RUN_ERROR"},
		"another id":                    {"tc m; tc n; fin", "S m; C m; E m; S n; C n; E n; RUN_FINISHED"},
		"another kind":                  {"tc m; cc c<f; rc r; fin", "S m; C m; E m; TS c; TA c; TE c; RMS r; RMC r; RME r; RUN_FINISHED"},
		"explicit event":                {"tc m; custom", "S m; C m; E m; CUSTOM"},
		"state":                         {"tc m; snap", "S m; C m; E m; STATE_SNAPSHOT"},
		"aside":                         {"tc m; raw; AS a; AD a; EV m; SA s; unk; tc -; fin", "S m; C m; RAW; ACTIVITY_SNAPSHOT; ACTIVITY_DELTA; REASONING_ENCRYPTED_VALUE; SUBAGENT_STARTED; FUTURE; C m; E m; RUN_FINISHED"},
		"lanes":                         {"tc m@s; tc n@u; tc -@s; tc -@u; custom; fin", "S m@s; C m@s; S n@u; C n@u; C m@s; C n@u; CUSTOM; E m@s; E n@u; RUN_FINISHED"},
		"explicit event in its lane":    {"tc m@s; tc n; custom@s; tc -", "S m@s; C m@s; S n; C n; E m@s; CUSTOM; C n"},
		"snapshot closes all lanes":     {"tc m@s; tc n; MS x", "S m@s; C m@s; S n; C n; E m@s; E n; MESSAGES_SNAPSHOT"},
		"subagent's end":                {"tc m@s; tc n; SZ s; tc -", "S m@s; C m@s; S n; C n; E m@s; SUBAGENT_FINISHED; C n"},
		"the id finds the lane":         {"tc m@s; tc m", "S m@s; C m@s; C m@s"},
		"the parent's item comes first": {"tc m@s; tc n; tc -", "S m@s; C m@s; S n; C n; C n"},
		"the only open item":            {"tc m@s; rc r; tc -", "S m@s; C m@s; RMS r; RMC r; C m@s"},
		"a broken stream gets no end":   {"tc m", "S m; C m"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c ChunkExpander
			var got []Event
			for _, e := range script(t, tt.stream) {
				events, err := c.Expand(e)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, events...)
			}
			if diff := cmp.Diff(tt.want, transcript(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestExpandErrors(t *testing.T) {
	t.Parallel()
	open := []Event{
		&TextMessageChunk{MessageID: "m", Role: RoleUser, Name: "n", Delta: "d"},
		&ToolCallChunk{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "p", SubagentRunID: "s"},
		&TextMessageChunk{MessageID: "a", Delta: "d", SubagentRunID: "u"},
		&ToolCallChunk{ToolCallID: "d", ToolCallName: "f", SubagentRunID: "w"},
	}
	tests := []struct {
		event    Event
		wantRule Rule
	}{
		{&TextMessageChunk{MessageID: "m", Role: RoleAssistant}, RuleChunkConflict},
		{&TextMessageChunk{MessageID: "m", Name: "o"}, RuleChunkConflict},
		{&TextMessageChunk{MessageID: "m", SubagentRunID: "s"}, RuleChunkConflict},
		{&TextMessageChunk{MessageID: "a", Role: RoleUser}, RuleChunkConflict},
		{&ToolCallChunk{ToolCallID: "c", ToolCallName: "g"}, RuleChunkConflict},
		{&ToolCallChunk{ToolCallID: "c", ParentMessageID: "q"}, RuleChunkConflict},
		{&ToolCallChunk{Delta: "d"}, RuleChunkAmbiguous},
		{&ToolCallChunk{ToolCallID: "new"}, RuleFirstChunk},
		{&ReasoningMessageChunk{Delta: "d"}, RuleFirstChunk},
	}
	for _, tt := range tests {
		var c ChunkExpander
		for _, e := range open {
			if _, err := c.Expand(e); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Expand(tt.event)
		if got, ok := errors.AsType[*OrderError](err); !ok || got.Rule != tt.wantRule {
			t.Errorf("Expand(%+v) = %v, want %s", tt.event, err, tt.wantRule)
		}
	}
}

// TestExpandKeepsBaseMembers: the other members of a chunk go to the events made from it, and not
// to the end of another item.
func TestExpandKeepsBaseMembers(t *testing.T) {
	t.Parallel()
	base := decode(t, `{"type":"RAW","event":1,"timestamp":7,"rawEvent":{"p":1},"metadata":{"k":1},"x":1}`).Base()
	bare := BaseEvent{Timestamp: 7, Metadata: base.Metadata, Unknown: base.Unknown}
	start := BaseEvent{Timestamp: 7, Metadata: base.Metadata}
	var c ChunkExpander
	var got []Event
	for _, e := range []Event{
		&TextMessageChunk{BaseEvent: *base, MessageID: "m", Delta: "d"},
		&TextMessageChunk{BaseEvent: bare},
		&ToolCallChunk{BaseEvent: bare, ToolCallID: "c", ToolCallName: "f"},
		&ReasoningMessageChunk{BaseEvent: *base, MessageID: "r"},
	} {
		events, err := c.Expand(e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, events...)
	}
	want := []Event{
		&TextMessageStart{BaseEvent: start, MessageID: "m", Role: RoleAssistant},
		&TextMessageContent{BaseEvent: *base, MessageID: "m", Delta: "d"},
		&TextMessageContent{BaseEvent: bare, MessageID: "m"},
		&TextMessageEnd{MessageID: "m"},
		&ToolCallStart{BaseEvent: bare, ToolCallID: "c", ToolCallName: "f"},
		&ToolCallEnd{ToolCallID: "c"},
		&ReasoningMessageStart{BaseEvent: start, MessageID: "r"},
		&ReasoningMessageContent{BaseEvent: *base, MessageID: "r"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
