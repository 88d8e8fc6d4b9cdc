package agui

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// body returns a request with the messages and further members.
func body(messages, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return `{"threadId":"t","runId":"r","messages":` + messages + rest + `}`
}

// decodeInput decodes an input.
func decodeInput(t testing.TB, raw string) *RunAgentInput {
	t.Helper()
	in, err := DecodeInput([]byte(raw))
	if err != nil {
		t.Fatalf("DecodeInput(%s): %v", raw, err)
	}
	return in
}

func TestDecodeInput(t *testing.T) {
	t.Parallel()
	in := decodeInput(t, body(`[{"id":"u","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"x"}},{"type":"text","text":"b"}]},{"id":"a","role":"assistant","content":null}]`,
		`"protocolVersion":null,"parentRunId":null,"state":null,"tools":null,"context":[],"forwardedProps":null,"resume":null,"future":{"x":[1, 2]}`))
	want := &RunAgentInput{
		ThreadID: "t", RunID: "r",
		Messages: []Message{
			{ID: "u", Role: RoleUser, Content: PartsContent([]ContentPart{TextPart("a"), {Type: PartImage, Source: &PartSource{Type: SourceURL, Value: "x"}}, TextPart("b")})},
			{ID: "a", Role: RoleAssistant},
		},
		Context: []Context{},
		Unknown: map[string]json.RawMessage{"future": []byte(`{"x":[1,2]}`)},
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := in.Messages[0].Content.Text(); got != "ab" {
		t.Errorf("Text() = %q, want %q", got, "ab")
	}
	if warnings := StripInput(in); len(warnings) != 1 || warnings[0].Pointer != "/future" {
		t.Errorf("warnings = %v, want one for /future", warnings)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "RunAgentInput", raw)
}

func TestDecodeInputErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, wantPointer, wantDetail string }{
		{``, "", "malformed JSON"},
		{body(`[]`, "") + "{}", "", "after top-level value"},
		{`"x"`, "", "must be an object, is a string"},
		{`{"runId":"r","messages":[]}`, "/threadId", "is required"},
		{`{"threadId":"t","messages":[]}`, "/runId", "is required"},
		{`{"threadId":"t","runId":"r"}`, "/messages", "is required"},
		{`{"threadId":"","runId":"r","messages":[]}`, "/threadId", "must not be empty"},
		{`{"threadId":"t","runId":"","messages":[]}`, "/runId", "must not be empty"},
		{`{"threadId":"t","runId":"r","messages":null}`, "/messages", "must be an array, is null"},
		{`{"threadId":1,"runId":"r","messages":[]}`, "/threadId", "must be a string, is a number"},
		{body(`{}`, ""), "/messages", "must be an array, is an object"},
		{body(`[7]`, ""), "/messages/0", "must be an object, is a number"},
		{body(`[{"role":"user","content":""}]`, ""), "/messages/0/id", "is required"},
		{body(`[{"id":"","role":"user","content":""}]`, ""), "/messages/0/id", "must not be empty"},
		{body(`[{"id":"1"}]`, ""), "/messages/0/role", "is required"},
		{body(`[{"id":"1","role":""}]`, ""), "/messages/0/role", "must not be empty"},
		{body(`[{"id":"1","role":"user","content":"a"},{"id":"2","role":"user"}]`, ""), "/messages/1/content", "is required"},
		{body(`[{"id":"1","role":"user","content":7}]`, ""), "/messages/0/content", "must be a string or an array of parts, is a number"},
		{body(`[{"id":"1","role":"system","content":[]}]`, ""), "/messages/0/content", "must be a string, is an array"},
		{body(`[{"id":"1","role":"tool","content":"x"}]`, ""), "/messages/0/toolCallId", "is required"},
		{body(`[{"id":"1","role":"user","content":"a"},{"id":"1","role":"user","content":"b"}]`, ""), "/messages/1/id", "is the id of /messages/0 already"},
		{body(`[]`, `"tools":[{"name":"n"}]`), "/tools/0/description", "is required"},
		{body(`[]`, `"context":[{"description":"d","value":{}}]`), "/context/0/value", "must be a string, is an object"},
		{body(`[]`, `"resume":[{"interruptId":"i","status":"approved"}]`), "/resume/0/status", "must be one of resolved, cancelled"},
		{body(`[]`, `"runId":"again"`), "/runId", "appears twice"},
	}
	for _, tt := range tests {
		_, err := DecodeInput([]byte(tt.in))
		checkDecodeError(t, tt.in, err, tt.wantPointer, tt.wantDetail)
	}
}

func TestInputDigest(t *testing.T) {
	t.Parallel()
	const user = `[{"id":"u","role":"user","content":"é"}]`
	base := decodeInput(t, body(user, "")).Digest()
	same := []string{
		body(user, `"tools":[],"context":[],"state":{},"resume":[]`),
		body(user, `"tools":null,"context":null,"state":null,"forwardedProps":null`),
		`{ "messages" : [ { "content":"\u00e9", "role":"user", "id":"u", "metadata":{} } ], "state":{ }, "runId":"r", "threadId":"t" }`,
	}
	for _, raw := range same {
		if decodeInput(t, raw).Digest() != base {
			t.Errorf("digest of %s differs, want the same", raw)
		}
	}
	seen := map[[32]byte]string{base: "base"}
	different := []string{
		body(`[{"id":"u","role":"user","content":"e"}]`, ""),
		body(`[{"id":"v","role":"user","content":"é"}]`, ""),
		body(`[{"id":"u","role":"system","content":"é"}]`, ""),
		body(user, `"state":[]`),
		body(user, `"state":{"n":1}`),
		body(user, `"state":{"n":1.0}`),
		body(user, `"forwardedProps":{}`),
		body(user, `"future":1`),
		body(user, `"protocolVersion":"1.0"`),
		body(user, `"resume":[{"interruptId":"i","status":"cancelled"}]`),
	}
	for _, raw := range different {
		d := decodeInput(t, raw).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("one digest: %s and %s", raw, other)
		}
		seen[d] = raw
	}
	a := decodeInput(t, body(user, `"state":{"a":{"x":1,"y":[{"p":1,"q":2}]},"b":2}`))
	b := decodeInput(t, body(user, `"state":{"b":2,"a":{"y":[{"q":2,"p":1}],"x":1}}`))
	if a.Digest() != b.Digest() {
		t.Error("digests of two orders of members differ, want the same")
	}
}

func TestMessageDigest(t *testing.T) {
	t.Parallel()
	m := Message{ID: "m", Role: RoleAssistant, Content: TextContent("x"), ToolCalls: []ToolCall{}, Metadata: Metadata{}}
	plain := Message{ID: "m", Role: RoleAssistant, Content: TextContent("x")}
	if m.Digest() != plain.Digest() {
		t.Error("digests of empty and absent members differ, want the same")
	}
	plain.ToolCalls = []ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
	if m.Digest() == plain.Digest() {
		t.Error("digest with a tool call is the same, want another")
	}
	broken := Message{ID: "m", Role: "narrator"}
	if broken.Digest() == (Message{ID: "m", Role: "writer"}).Digest() {
		t.Error("digests of two messages that cannot be encoded are equal, want different ones")
	}
}

func TestLegacyBinary(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"type":"binary","mimeType":"image/png","url":"https://example.com/a"}`:                `[{"type":"image","source":{"type":"url","value":"https://example.com/a","mimeType":"image/png"}}]`,
		`{"type":"binary","mimeType":"audio/wav","data":"AA==","url":"https://example.com/a"}`:  `[{"type":"audio","source":{"type":"data","value":"AA==","mimeType":"audio/wav"}}]`,
		`{"type":"binary","mimeType":"video/mp4","data":"AA=="}`:                                `[{"type":"video","source":{"type":"data","value":"AA==","mimeType":"video/mp4"}}]`,
		`{"type":"binary","mimeType":"application/pdf","data":"AA==","filename":"a \"b\".pdf"}`: `[{"type":"document","source":{"type":"data","value":"AA==","mimeType":"application/pdf"},"metadata":{"filename":"a \"b\".pdf"}}]`,
		`{"type":"binary","mimeType":"image/png","id":"only"}`:                                  `[{"type":"image","source":{"type":"file","value":"only","mimeType":"image/png"}}]`,
		`{"type":"binary","id":"only"}`:                                                         `[{"type":"binary","id":"only"}]`,
		`{"type":"binary","data":"AA=="}`:                                                       `[{"type":"binary","data":"AA=="}]`,
		// If both forms are sent, the old one is dropped, unless only it has the name.
		`{"type":"binary","mimeType":"image/png","data":"AA=="},{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"},"metadata":{"filename":"f"}}`: `[{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"},"metadata":{"filename":"f"}}]`,
		`{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}},{"type":"binary","mimeType":"image/png","data":"AA==","filename":"f"}`:              `[{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}},{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"},"metadata":{"filename":"f"}}]`,
	}
	for parts, want := range tests {
		in := decodeInput(t, body(`[{"id":"u","role":"user","content":[`+parts+`]}]`, ""))
		got, err := json.Marshal(in.Messages[0].Content.Parts())
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", parts, got, want)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	if !(Content{}).IsAbsent() || TextContent("").IsAbsent() || !TextContent("").IsText() {
		t.Error("absent and empty text are equal, want them distinguished")
	}
	if diff := cmp.Diff([]ContentPart{TextPart("x")}, TextContent("x").Parts()); diff != "" {
		t.Errorf("parts of a text (-want +got):\n%s", diff)
	}
	if got := PartsContent([]ContentPart{TextPart("a"), {Type: PartImage}, TextPart("b")}).Text(); got != "ab" {
		t.Errorf("Text() = %q, want %q", got, "ab")
	}
	if got := string(ObjectContent([]byte(`{}`)).Object()); got != "{}" {
		t.Errorf("Object() = %s, want {}", got)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	tests := map[string][2]int{"1.0": {1, 0}, "1.1": {1, 1}, "12.345": {12, 345}, "0.0": {0, 0}}
	for s, want := range tests {
		if major, minor, ok := ParseVersion(s); !ok || major != want[0] || minor != want[1] {
			t.Errorf("ParseVersion(%q) = %d, %d, %v, want %v", s, major, minor, ok, want)
		}
	}
	for _, s := range []string{"", "1", "1.", ".1", "1.0.0", "draft", "v1.0", "+1.0", "1.-1", " 1.0", "1.99999999999999999999"} {
		if _, _, ok := ParseVersion(s); ok {
			t.Errorf("ParseVersion(%q) succeeds", s)
		}
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	const all = `{"identity":{"name":"n","type":"t","description":"d","version":"v","provider":"p","documentationUrl":"u","metadata":{"k":null}},` +
		`"transport":{"streaming":true,"websocket":true,"httpBinary":false,"pushNotifications":false,"resumable":true},` +
		`"tools":{"supported":true,"items":[{"name":"n","description":"d"}],"parallelCalls":true,"clientProvided":false},` +
		`"output":{"structuredOutput":false,"supportedMimeTypes":["text/plain"]},` +
		`"state":{"snapshots":true,"deltas":true,"memory":false,"persistentState":true},` +
		`"multiAgent":{"supported":true,"delegation":true,"handoffs":false,"subagents":[{"name":"n","description":"d"},{"name":"m"}]},` +
		`"reasoning":{"supported":true,"streaming":true,"encrypted":false},` +
		`"multimodal":{"input":{"image":true,"audio":false,"video":false,"pdf":true,"file":false},"output":{"image":false,"audio":false}},` +
		`"execution":{"codeExecution":false,"sandboxed":false,"maxIterations":0,"maxExecutionTime":60000},` +
		`"humanInTheLoop":{"supported":true,"approvals":true,"interventions":true,"feedback":false,"interrupts":true,"approveWithEdits":true},` +
		`"custom":{"acme":{"x":1}}}`
	var old MultiAgentCapabilities
	if err := json.Unmarshal([]byte(`{"supported":true,"subAgents":[{"name":"n"}]}`), &old); err != nil || len(old.Subagents) != 1 || old.Supported == nil {
		t.Errorf("subAgents = %+v, %v, want one subagent", old, err)
	}
	for _, want := range []string{all, `{}`, `{"transport":{}}`} {
		var c AgentCapabilities
		d := json.NewDecoder(strings.NewReader(want))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		checkSchema(t, "AgentCapabilities", got)
	}
}

func FuzzDecodeInput(f *testing.F) {
	f.Add([]byte(body(`[{"id":"u","role":"user","content":[{"type":"binary","mimeType":"image/png","data":"AA=="}]}]`, `"tools":[{"name":"n","description":"d"}],"resume":[],"x":1`)))
	f.Add([]byte(body(`[{"id":"t","role":"tool","toolCallId":"c","content":"x"},{"id":"a","role":"activity","activityType":"a","content":{}}]`, `"state":[1,{"a":2}],"forwardedProps":{"b":null}`)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := DecodeInput(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(in)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		twin := decodeInput(t, string(again))
		if in.Digest() != twin.Digest() {
			t.Errorf("digest after a round trip differs, want the same of %s", again)
		}
		StripInput(twin)
		stripped, err := json.Marshal(twin)
		if err != nil {
			t.Fatal(err)
		}
		checkSchema(t, "RunAgentInput", stripped)
	})
}

// TestStripInput: members that a later protocol version may have added do not make an input
// invalid. StripInput returns them, so that the server can log them.
func TestStripInput(t *testing.T) {
	t.Parallel()
	in, err := DecodeInput([]byte(`{"threadId":"t","runId":"r","protocolVersion":"1.7","later":{},` +
		`"messages":[{"id":"1","role":"narrator","content":7},{"id":"2","role":"user","content":[{"type":"hologram"},{"type":"text","text":"t"}],"mood":"calm"}],` +
		`"tools":[{"name":"f","description":"d","strict":true}],"forwardedProps":{"mine":{"type":"hologram"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range StripInput(in) {
		got = append(got, w.Pointer)
	}
	want := []string{"/messages/0", "/messages/1/content/0", "/messages/1/mood", "/tools/0/strict", "/later", "/protocolVersion"}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "RunAgentInput", raw)
	const left = `{"threadId":"t","runId":"r","protocolVersion":"1.7","messages":[{"id":"2","role":"user","content":[{"type":"text","text":"t"}]}],"tools":[{"name":"f","description":"d"}],"forwardedProps":{"mine":{"type":"hologram"}}}`
	if string(raw) != left {
		t.Errorf("left is\n%s, want\n%s", raw, left)
	}
	for version, warned := range map[string]bool{"": false, "1.0": false, "1.1": false, "1.2": true, "one": true, "1": true} {
		if got := StripInput(&RunAgentInput{ProtocolVersion: version}); (len(got) > 0) != warned {
			t.Errorf("version %q: warnings = %v, want some: %t", version, got, warned)
		}
	}
}
