package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines returns the lines of a file of test data.
func lines(t testing.TB, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// TestGoldenEvents: the golden lines are exactly what Encode writes: the order of members, required
// null kept, optional members absent.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	covered := make(map[EventType]bool)
	for _, line := range lines(t, "events.jsonl") {
		e := decode(t, line)
		if got := string(encode(t, e)); got != line {
			t.Errorf("encoded\n%s\nwant\n%s", got, line)
		}
		checkRoundTrip(t, e)
		checkSchema(t, "", []byte(line))
		if _, warnings := Strip(e); len(warnings) > 0 {
			t.Errorf("%s: warnings = %v, want none", line, warnings)
		}
		covered[e.EventType()] = true
	}
	for want := range eventTable {
		if !covered[want] {
			t.Errorf("golden line for %s: got none, want one", want)
		}
	}
	if len(eventTable) != 31 {
		t.Errorf("number of event types = %d, want 31", len(eventTable))
	}
}

// TestForeignMaterialSurvives: unknown material survives being stored and sent on.
func TestForeignMaterialSurvives(t *testing.T) {
	t.Parallel()
	for _, line := range lines(t, "foreign.jsonl") {
		e := decode(t, line)
		checkRoundTrip(t, e)
		if diff := cmp.Diff(parse(t, []byte(line)), parse(t, encode(t, e))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestStripLeavesOnlyDescribedMaterial(t *testing.T) {
	t.Parallel()
	want := [][]string{
		{""},
		{"/future", "/later"},
		{"/outcome", "/usage/0/future"},
		{"/outcome/interrupts"},
		{
			"/messages/0/content/0", "/messages/0/content/1", "/messages/0/toolCallId",
			"/messages/1/toolCalls/0/function/strict", "/messages/1/toolCalls/0/index",
		},
		{"/delta/0"},
		{"/input/tools/0/x", "/input/context/0/x", "/input/resume/0/x", "/input/x"},
		{"/messages/0", "/messages/1/toolCalls/0/encryptedValueType", "/messages/1/encryptedValueType"},
	}
	for i, line := range lines(t, "foreign.jsonl") {
		e, warnings := Strip(decode(t, line))
		var got []string
		for _, w := range warnings {
			got = append(got, w.Pointer)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", line, diff)
		}
		if e == nil {
			continue
		}
		checkSchema(t, "", encode(t, e))
		if _, again := Strip(e); len(again) > 0 {
			t.Errorf("%s: warnings of a repeated Strip = %v, want none", line, again)
		}
	}
}

func TestTypeIsEncodedFirst(t *testing.T) {
	t.Parallel()
	e := decode(t, ` { "x" : 1 , "metadata":{"b":1, "a":[ ]}, "type" : "FUTURE" } `)
	if got, want := string(encode(t, e)), `{"type":"FUTURE","x":1,"metadata":{"a":[],"b":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNullOptionalsAreAbsent(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":null,"result":null,"usage":null,"rawEvent":null,"metadata":null,"timestamp":null}`: `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":null,"subagentRunId":null}`:                                    `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{},"replace":null}`:                                                   `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{}}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant","content":null,"toolCalls":null,"name":null}]}`:                           `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant"}]}`,
	}
	for in, want := range tests {
		if got := string(encode(t, decode(t, in))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, wantPointer, wantDetail string }{
		{`{`, "", "malformed JSON at byte 1"},
		{`{"type":"RAW","event":1} x`, "", "after top-level value"},
		{"{\"type\":\"RAW\",\"event\":\"\xff\"}", "", "not UTF-8"},
		{`[]`, "", "must be an object, is an array"},
		{`null`, "", "must be an object, is null"},
		{`{}`, "/type", "is required"},
		{`{"type":7}`, "/type", "must be a string, is a number"},
		{`{"type":""}`, "/type", "must not be empty"},
		{`{"type":"RAW","type":"CUSTOM","event":1}`, "/type", "appears twice"},
		{`{"type":"RAW"}`, "/event", "is required"},
		{`{"type":"CUSTOM","name":"n"}`, "/value", "is required"},
		{`{"type":"STATE_SNAPSHOT"}`, "/snapshot", "is required"},
		{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":null}`, "/delta", "must be a string, is null"},
		{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"tool"}`, "/role", `must be one of developer, system, assistant, user, is "tool"`},
		{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":""}`, "/role", `is ""`},
		{`{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":1.5}`, "/timestamp", "must be an integer"},
		{`{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":9007199254740992}`, "/timestamp", "must be an integer"},
		{`{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":[]}`, "/metadata", "must be an object, is an array"},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{}}`, "/outcome/type", "is required"},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt"}}`, "/outcome/interrupts", "is required"},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}`, "/outcome/interrupts", "must not be empty"},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"r","responseSchema":true}]}}`, "/outcome/interrupts/0/responseSchema", "must be an object, is a boolean"},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["a",1]}}`, "/outcome/pendingToolCallIds/1", "must be a string, is a number"},
		{`{"type":"RUN_ERROR","message":"m","usage":[{"inputTokens":-1}]}`, "/usage/0/inputTokens", "between 0 and"},
		{`{"type":"STATE_DELTA","delta":{}}`, "/delta", "must be an array of operations"},
		{`{"type":"STATE_DELTA","delta":[1]}`, "/delta/0", "must be an object, is a number"},
		{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"a","value":1}]}`, "/delta/0/path", "must be a JSON pointer"},
		{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a~2","value":1}]}`, "/delta/0/path", "must be a JSON pointer"},
		{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a"}]}`, "/delta/0/value", "is required"},
		{`{"type":"STATE_DELTA","delta":[{"op":"test","path":"","value":1},{"op":"move","path":"/a"}]}`, "/delta/1/from", "is required"},
		{`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":[]}`, "/content", "must be an object, is an array"},
		{`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{},"replace":0}`, "/replace", "must be true or false"},
		{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant","content":[]}]}`, "/messages/0/content", "must be a string, is an array"},
		{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"data","value":"v"}}]}]}`, "/messages/0/content/0/source/mimeType", "is required"},
		{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant","toolCalls":[{"id":"c","type":"code","function":{}}]}]}`, "/messages/0/toolCalls/0/type", "must be one of function"},
		{`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":{}}`, "/content", "must be a string or an array of parts, is an object"},
	}
	for _, tt := range tests {
		_, err := Decode([]byte(tt.in))
		checkDecodeError(t, tt.in, err, tt.wantPointer, tt.wantDetail)
	}
}

// checkDecodeError checks the pointer and the detail of an error.
func checkDecodeError(t *testing.T, in string, err error, pointer, detail string) {
	t.Helper()
	got, ok := errors.AsType[*DecodeError](err)
	if !ok {
		t.Errorf("%s: error %v, want a *DecodeError at %q", in, err, pointer)
		return
	}
	if got.Pointer != pointer || !strings.Contains(got.Detail, detail) {
		t.Errorf("%s: %q %q, want %q …%q…", in, got.Pointer, got.Detail, pointer, detail)
	}
	if !strings.Contains(got.Error(), got.Pointer) || !strings.Contains(got.Error(), got.Detail) {
		t.Errorf("Error() = %q, want the pointer and the detail", got.Error())
	}
}

func TestEncodeRefusesInvalidEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		event       Event
		wantPointer string
	}{
		{&TextMessageStart{MessageID: "m", Role: RoleTool}, "/role"},
		{&TextMessageEnd{BaseEvent: BaseEvent{Timestamp: maxInteger + 1}}, "/timestamp"},
		{&TextMessageEnd{BaseEvent: BaseEvent{Unknown: map[string]json.RawMessage{"messageId": []byte("1")}}}, "/messageId"},
		{&TextMessageEnd{BaseEvent: BaseEvent{Metadata: Metadata{"a/b": []byte("{")}}}, "/metadata/a~1b"},
		{&StateSnapshot{Snapshot: []byte("{} {}")}, "/snapshot"},
		{&StateDelta{Delta: []byte(`[{"op":"add","path":"x","value":1}]`)}, "/delta/0/path"},
		{&ActivitySnapshot{Content: []byte(`[]`)}, "/content"},
		{&ToolCallResult{MessageID: "m"}, "/content"},
		{&RunFinished{Outcome: &Outcome{}}, "/outcome/type"},
		{&RunFinished{Outcome: &Outcome{Type: OutcomeInterrupt}}, "/outcome/interrupts"},
		{&RunError{Usage: []TokenUsage{{InputTokens: new(int64(-1))}}}, "/usage/0/inputTokens"},
		{&MessagesSnapshot{Messages: []Message{{ID: "1"}}}, "/messages/0/role"},
		{&MessagesSnapshot{Messages: []Message{{ID: "1", Role: RoleUser}}}, "/messages/0/content"},
		{&MessagesSnapshot{Messages: []Message{{ID: "1", Role: RoleAssistant, Content: PartsContent(nil)}}}, "/messages/0/content"},
		{&MessagesSnapshot{Messages: []Message{{ID: "1", Role: RoleUser, Content: PartsContent([]ContentPart{{Type: PartImage}})}}}, "/messages/0/content/0/source"},
		{&UnknownEvent{}, "/type"},
		{&UnknownEvent{Type: "X", JSON: []byte("[]")}, ""},
	}
	for _, tt := range tests {
		_, err := Encode(tt.event)
		got, ok := errors.AsType[*EncodeError](err)
		if !ok || got.Pointer != tt.wantPointer {
			t.Errorf("Encode(%+v) = %v, want an *EncodeError at %q", tt.event, err, tt.wantPointer)
		}
	}
}

func TestEncodeFillsRequiredValues(t *testing.T) {
	t.Parallel()
	tests := map[Event]string{
		&StateSnapshot{}:    `{"type":"STATE_SNAPSHOT","snapshot":null}`,
		&Custom{Name: "n"}:  `{"type":"CUSTOM","name":"n","value":null}`,
		&Raw{}:              `{"type":"RAW","event":null}`,
		&StateDelta{}:       `{"type":"STATE_DELTA","delta":[]}`,
		&MessagesSnapshot{}: `{"type":"MESSAGES_SNAPSHOT","messages":[]}`,
		&RunFinished{Result: []byte("null"), BaseEvent: BaseEvent{RawEvent: []byte(" null ")}}: `{"type":"RUN_FINISHED","threadId":"","runId":""}`,
		&StateSnapshot{Snapshot: []byte(" { \"a b\" : [ 1 , 2 ] } ")}:                          `{"type":"STATE_SNAPSHOT","snapshot":{"a b":[1,2]}}`,
	}
	for e, want := range tests {
		if got := string(encode(t, e)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestEventsRefuseEncodingJSON(t *testing.T) {
	t.Parallel()
	if raw, err := json.Marshal(&TextMessageEnd{}); err == nil {
		t.Errorf("json.Marshal = %s, want an error", raw)
	}
	if err := json.Unmarshal([]byte(`{}`), &TextMessageEnd{}); err == nil {
		t.Error("json.Unmarshal of an event: got no error, want one")
	}
}

// TestObjectsMarshalAlone: the objects inside events can be marshaled alone through encoding/json.
func TestObjectsMarshalAlone(t *testing.T) {
	t.Parallel()
	roundTrip[Message](t, `{"id":"1","role":"user","content":"a\u003cb","x":1}`)
	roundTrip[ToolCall](t, `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`)
	roundTrip[ContentPart](t, `{"type":"text","text":"t"}`)
	roundTrip[PartSource](t, `{"type":"url","value":"v"}`)
	roundTrip[Tool](t, `{"name":"n","description":"d"}`)
	roundTrip[Context](t, `{"description":"d","value":"v"}`)
	roundTrip[ResumeEntry](t, `{"interruptId":"i","status":"cancelled"}`)
	roundTrip[Interrupt](t, `{"id":"i","reason":"r"}`)
	roundTrip[Outcome](t, `{"type":"interrupt","interrupts":[{"id":"i","reason":"r"}]}`)
	roundTrip[SubagentOutcome](t, `{"type":"suspended","interruptIds":["i"]}`)
	roundTrip[TokenUsage](t, `{"provider":"p","inputTokens":0}`)
	roundTrip[RunAgentInput](t, `{"threadId":"t","runId":"r","messages":[]}`)
}

// roundTrip checks that a value is encoded as it was decoded.
func roundTrip[T any](t *testing.T, want string) {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(want), &v); err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	if got, err := json.Marshal(v); err != nil || string(got) != want {
		t.Errorf("%T: got %s (%v), want %s", v, got, err, want)
	}
	if err := json.Unmarshal([]byte(`[]`), &v); err == nil {
		t.Errorf("json.Unmarshal of an array into %T: got no error, want one", v)
	}
	// A failed decoding leaves the value unchanged; a second encoding is equal.
	if got, _ := json.Marshal(v); string(got) != want {
		t.Errorf("%T after a failed Unmarshal = %s, want it unchanged", v, got)
	}
}

func TestUnmarshalReplacesWholeValue(t *testing.T) {
	t.Parallel()
	m := Message{ID: "old", Role: RoleAssistant, Name: "old", ToolCalls: []ToolCall{{ID: "c"}}}
	if err := json.Unmarshal([]byte(`{"id":"new","role":"user","content":""}`), &m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Message{ID: "new", Role: RoleUser, Content: TextContent("")}, m); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestDecodeDoesNotAliasInput(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"type":"CUSTOM","name":"name","value":{"k":"v"},"metadata":{"m":"n"},"x":"y"}`)
	want := decode(t, string(raw))
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = '#'
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestTypeOf(t *testing.T) {
	t.Parallel()
	tests := map[string]EventType{
		`{"type":"RAW","event":1}`:            EventRaw,
		`{ "type" : "RAW" , "event":1}`:       EventRaw,
		`{"event":{"type":"X"},"type":"RAW"}`: EventRaw,
		`{"type":"R\u0041W","event":1}`:       EventRaw,
		`{"t\u0079pe":"RAW","event":1}`:       EventRaw,
		`{"event":1}`:                         "",
		`{"type":5}`:                          "",
		`["type","RAW"]`:                      "",
		`{"type":"RAW`:                        "",
		`{"x":1,"type":"RAW"`:                 "",
		``:                                    "",
		`null`:                                "",
	}
	for in, want := range tests {
		if got := TypeOf([]byte(in)); got != want {
			t.Errorf("TypeOf(%s) = %q, want %q", in, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range []string{"events.jsonl", "foreign.jsonl"} {
		for _, line := range lines(f, file) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			return
		}
		if got := TypeOf(raw); got != e.EventType() {
			t.Errorf("TypeOf = %q, want %q", got, e.EventType())
		}
		checkRoundTrip(t, e)
		var v Verifier
		_ = v.Check(e)
		r := NewReducer(nil, nil)
		_ = r.Apply(e)
		if _, err := json.Marshal(r.Messages()); err != nil {
			t.Errorf("reduced messages: %v", err)
		}
		if s, _ := Strip(e); s != nil {
			checkSchema(t, "", encode(t, s))
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\x1f\x7f\"\\/<>&\u2028\u2029é😀\xff\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		w := json.NewEncoder(&want)
		w.SetEscapeHTML(false)
		if err := w.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := string(appendString(nil, s)) + "\n"; got != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}

func BenchmarkEncodeTextMessageContent(b *testing.B) {
	e := &TextMessageContent{
		BaseEvent: BaseEvent{Timestamp: 1700000000000},
		MessageID: "01JABCDEF0123456789-m-3", Delta: "Hello, \"world\" — ",
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeTextMessageContent(b *testing.B) {
	raw := []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"01JABCDEF0123456789-m-3","delta":"Hello, \"world\" — ","timestamp":1700000000000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTypeOf(b *testing.B) {
	raw := []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}`)
	b.ReportAllocs()
	for b.Loop() {
		if TypeOf(raw) != EventTextMessageContent {
			b.Fatalf("TypeOf = %s, want %s", TypeOf(raw), EventTextMessageContent)
		}
	}
}
