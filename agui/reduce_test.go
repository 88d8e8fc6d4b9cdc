package agui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reduce applies events given as JSON to initial messages and a state.
func reduce(t *testing.T, messages, state string, events ...string) *Reducer {
	t.Helper()
	var start []Message
	if err := json.Unmarshal([]byte(messages), &start); err != nil {
		t.Fatal(err)
	}
	var raw json.RawMessage
	if state != "" {
		raw = json.RawMessage(state)
	}
	r := NewReducer(start, raw)
	for _, e := range events {
		if err := r.Apply(decode(t, e)); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	return r
}

// messagesJSON returns the messages of a reducer as JSON.
func messagesJSON(t *testing.T, r *Reducer) string {
	t.Helper()
	raw, err := json.Marshal(r.Messages())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestReducerMessages(t *testing.T) {
	t.Parallel()
	const user = `{"id":"u","role":"user","content":"hi"}`
	tests := []struct {
		name, start string
		events      []string
		want        string
	}{
		{
			"echoed input adds only unknown messages", `[` + user + `]`,
			[]string{`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"other"},{"id":"v","role":"user","content":"new"}]}}`},
			`[` + user + `,{"id":"v","role":"user","content":"new"}]`,
		},
		{
			"text: absent role is assistant", `[]`,
			[]string{`{"type":"TEXT_MESSAGE_START","messageId":"m","name":"n","subagentRunId":"s","metadata":{"a":1}}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"b":2}}`},
			`[{"id":"m","role":"assistant","name":"n","content":"x","subagentRunId":"s","metadata":{"a":1,"b":2}}]`,
		},
		{
			"text appended to parts replaces them", `[{"id":"m","role":"user","content":[{"type":"text","text":"old"}]}]`,
			[]string{`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`},
			`[{"id":"m","role":"user","content":"ab"}]`,
		},
		{
			"a snapshot in mid-message is what later text is added to", `[]`,
			[]string{
				`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"long lost"}`,
				`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":"S","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"["}}]}]}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"+"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"]"}`,
			},
			`[{"id":"m","role":"assistant","content":"S+","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[]"}}]}]`,
		},
		{
			"tool call without a parent makes a message by its own id", `[` + user + `]`,
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","subagentRunId":"s"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`},
			`[` + user + `,{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"subagentRunId":"s"}]`,
		},
		{
			"tool call with an unknown parent makes that parent", `[]`,
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"p"}`},
			`[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]`,
		},
		{
			"tool call with a parent of another role", `[` + user + `]`,
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"u"}`},
			`[` + user + `,{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]`,
		},
		{
			"known tool call keeps its arguments", `[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}]`,
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","metadata":{"k":1}}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"1}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c","metadata":{"k":2}}`},
			`[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"metadata":{"k":2}}]}]`,
		},
		{
			"results follow their call, in order, and are not deduplicated", `[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}},{"id":"d","type":"function","function":{"name":"f","arguments":""}}]},` + user + `]`,
			[]string{`{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"c","content":"1"}`, `{"type":"TOOL_CALL_RESULT","messageId":"r2","toolCallId":"d","content":[{"type":"text","text":"2"}],"subagentRunId":"s","metadata":{"k":1}}`, `{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"c","content":"1"}`, `{"type":"TOOL_CALL_RESULT","messageId":"r3","toolCallId":"x","content":"3"}`},
			`[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}},{"id":"d","type":"function","function":{"name":"f","arguments":""}}]},` +
				`{"id":"r1","role":"tool","toolCallId":"c","content":"1"},{"id":"r2","role":"tool","toolCallId":"d","content":[{"type":"text","text":"2"}],"subagentRunId":"s","metadata":{"k":1}},{"id":"r1","role":"tool","toolCallId":"c","content":"1"},` + user + `,{"id":"r3","role":"tool","toolCallId":"x","content":"3"}]`,
		},
		{
			"snapshot keeps reasoning and activity it says nothing of", `[` + user + `,{"id":"r","role":"reasoning","content":"hm"},{"id":"a","role":"activity","activityType":"x","content":{}},{"id":"gone","role":"assistant"}]`,
			[]string{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"n","role":"assistant","content":"new"},{"id":"u","role":"user","content":"edited"}]}`},
			`[{"id":"u","role":"user","content":"edited"},{"id":"r","role":"reasoning","content":"hm"},{"id":"a","role":"activity","activityType":"x","content":{}},{"id":"n","role":"assistant","content":"new"}]`,
		},
		{
			"snapshot with reasoning and activity owns both kinds", `[{"id":"r","role":"reasoning","content":"hm"},{"id":"a","role":"activity","activityType":"x","content":{}}]`,
			[]string{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"r2","role":"reasoning","content":""},{"id":"b","role":"activity","activityType":"x","content":{}}]}`},
			`[{"id":"r2","role":"reasoning","content":""},{"id":"b","role":"activity","activityType":"x","content":{}}]`,
		},
		{
			"snapshot complete for one activity type", `[{"id":"a","role":"activity","activityType":"x","content":{}},{"id":"b","role":"activity","activityType":"y","content":{}}]`,
			[]string{`{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":["x"]}}}`},
			`[{"id":"b","role":"activity","activityType":"y","content":{}}]`,
		},
		{
			"snapshot complete for all activity types", `[{"id":"a","role":"activity","activityType":"x","content":{}}]`,
			[]string{`{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}}`},
			`[]`,
		},
		{
			"activity is replaced in place and keeps its metadata", `[{"id":"a","role":"activity","activityType":"x","content":{"n":1},"subagentRunId":"s","metadata":{"k":1}},` + user + `]`,
			[]string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"y","content":{"n":2},"metadata":{"l":2}}`, `{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"z","patch":[{"op":"add","path":"/m","value":null}]}`},
			`[{"id":"a","role":"activity","activityType":"z","content":{"n":2,"m":null},"metadata":{"k":1,"l":2}},` + user + `]`,
		},
		{
			"snapshot with an unreadable activity scope deletes no activity", `[{"id":"a","role":"activity","activityType":"x","content":{}}]`,
			[]string{`{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":7}}`, `{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":"x"}}}`, `{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{}}}`},
			`[{"id":"a","role":"activity","activityType":"x","content":{}}]`,
		},
		{
			"activity takes over another message only when it replaces", `[` + user + `]`,
			[]string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"u","activityType":"x","content":{},"replace":false}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"!"}`, `{"type":"ACTIVITY_SNAPSHOT","messageId":"v","activityType":"x","content":{},"replace":false}`, `{"type":"ACTIVITY_SNAPSHOT","messageId":"u","activityType":"x","content":{"n":1}}`},
			`[{"id":"u","role":"activity","activityType":"x","content":{"n":1}},{"id":"v","role":"activity","activityType":"x","content":{}}]`,
		},
		{
			"encrypted values", `[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]`,
			[]string{`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c","encryptedValue":"1","encryptedValueType":"t"}`, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"p","encryptedValue":"2"}`},
			`[{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""},"encryptedValue":"1","encryptedValueType":"t"}],"encryptedValue":"2"}]`,
		},
		{
			"chunks", `[]`,
			[]string{`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`, `{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`, `{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":"m","delta":"{}"}`},
			`[{"id":"m","role":"assistant","content":"ab","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := reduce(t, tt.start, "", tt.events...)
			if diff := cmp.Diff(tt.want, messagesJSON(t, r)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReducerWarnings(t *testing.T) {
	t.Parallel()
	const activity = `{"id":"a","role":"activity","activityType":"x","content":{"n":1}}`
	tests := map[string]string{
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}`:                                                   "/messageId",
		`{"type":"TEXT_MESSAGE_END","messageId":"a"}`:                                                                  "/messageId",
		`{"type":"TEXT_MESSAGE_START","messageId":"a"}`:                                                                "/messageId",
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":""}`:                                                        "/toolCallId",
		`{"type":"TOOL_CALL_END","toolCallId":"c"}`:                                                                    "/toolCallId",
		`{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"x","patch":[]}`:                                      "/messageId",
		`{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"y","patch":[{"op":"replace","path":"","value":[]}]}`: "/patch",
		`{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"y","patch":[{"op":"remove","path":"/x"}]}`:           "/patch",
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/k","value":2},{"op":"test","path":"/k","value":1}]}`:      "/delta",
		`{"type":"STATE_DELTA","delta":[{"op":"increment"}]}`:                                                          "/delta",
		`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"a","encryptedValue":"e"}`:                 "/entityId",
		`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c","encryptedValue":"e"}`:               "/entityId",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"2.0"}`:                                    "/protocolVersion",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1"}`:                                      "/protocolVersion",
	}
	for e, pointer := range tests {
		r := reduce(t, `[`+activity+`]`, `{"k":0}`, e)
		if got := r.Warnings(); len(got) != 1 || got[0].Pointer != pointer || got[0].Type != TypeOf([]byte(e)) {
			t.Errorf("%s: warnings %v, want one at %s", e, got, pointer)
		}
		if got := messagesJSON(t, r); got != `[`+activity+`]` {
			t.Errorf("messages after %s = %s, want them unchanged", e, got)
		}
		if got := string(r.State()); got != `{"k":0}` {
			t.Errorf("state after %s = %s, want it unchanged", e, got)
		}
	}
}

func TestReducerRefusesMalformedPatches(t *testing.T) {
	t.Parallel()
	r := NewReducer(nil, nil)
	err := r.Apply(&StateDelta{Delta: []byte(`[{"op":"add","path":"a","value":1}]`)})
	checkDecodeError(t, "patch", err, "/delta/0/path", "must be a JSON pointer")
	err = r.Apply(&StateDelta{Delta: []byte(`[`)})
	checkDecodeError(t, "patch", err, "/delta", "malformed JSON")
}

func TestReducerStateAndInterrupts(t *testing.T) {
	t.Parallel()
	r := reduce(t, `[]`, "",
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/n","value":1.50}]}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`)
	if got, want := string(r.State()), `{"n":1.50}`; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	if got := r.Interrupts(); len(got) != 1 || got[0].ID != "i" {
		t.Errorf("interrupts = %v, want i", got)
	}
	if err := r.Apply(&RunFinished{}); err != nil || len(r.Interrupts()) != 0 {
		t.Errorf("interrupts after the next run = %v (%v), want none", r.Interrupts(), err)
	}
	if err := r.Apply(&StateSnapshot{}); err != nil || string(r.State()) != "null" {
		t.Errorf("state after a nil snapshot = %s (%v), want null", r.State(), err)
	}
}

// TestReducerDoesNotChangeReturnedMessages: the reducer does not share its messages and state with
// its inputs or results.
func TestReducerDoesNotChangeReturnedMessages(t *testing.T) {
	t.Parallel()
	start := []Message{{ID: "m", Role: RoleAssistant, Metadata: Metadata{"k": []byte("1")}, ToolCalls: []ToolCall{{ID: "c", Name: "f"}}}}
	snapshot := &MessagesSnapshot{Messages: []Message{{ID: "m", Role: RoleAssistant, ToolCalls: []ToolCall{{ID: "c", Name: "f"}}}}}
	r := NewReducer(start, nil)
	out := r.Messages()
	for _, e := range []Event{
		&TextMessageContent{BaseEvent: BaseEvent{Metadata: Metadata{"k": []byte("2")}}, MessageID: "m", Delta: "x"},
		&ToolCallArgs{ToolCallID: "c", Delta: "x"},
		snapshot,
		&ToolCallArgs{ToolCallID: "c", Delta: "y"},
	} {
		if err := r.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []Message{start[0], out[0], snapshot.Messages[0]} {
		if m.ToolCalls[0].Arguments != "" || m.Content.Text() != "" || m.Metadata != nil && string(m.Metadata["k"]) != "1" {
			t.Errorf("shared message after further events = %+v, want it unchanged", m)
		}
	}
}

func TestReducerBoundsWarnings(t *testing.T) {
	t.Parallel()
	r := NewReducer(nil, nil)
	for range 3 * maxWarnings {
		if err := r.Apply(&ToolCallEnd{ToolCallID: "none"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(r.Warnings()); got != maxWarnings {
		t.Errorf("number of warnings = %d, want %d", got, maxWarnings)
	}
}

// BenchmarkReduceLongMessage guards against quadratic growth: the time per
// delta must not depend on the length of the message.
func BenchmarkReduceLongMessage(b *testing.B) {
	for _, deltas := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(deltas), func(b *testing.B) {
			delta := &TextMessageContent{MessageID: "m", Delta: strings.Repeat("x", 20)}
			for b.Loop() {
				r := NewReducer(nil, nil)
				_ = r.Apply(&TextMessageStart{MessageID: "m"})
				for range deltas {
					_ = r.Apply(delta)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/delta")
		})
	}
}
