package protobuf_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/protobuf"
)

// What the reference implementation writes and reads is compared in e2e/reference; here is what
// needs no other program.

// golden returns the golden events.
func golden(t testing.TB) []agui.Event {
	t.Helper()
	raw, err := os.ReadFile("../testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var events []agui.Event
	for line := range strings.Lines(string(raw)) {
		e, err := agui.Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// message encodes an event.
func message(t testing.TB, e agui.Event) []byte {
	t.Helper()
	m, err := protobuf.Append(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRoundTrip: writing a decoded message gives the same bytes, so that nothing that this encoding
// carries is lost.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, e := range golden(t) {
		first := message(t, e)
		back, err := protobuf.Decode(first)
		if err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if again := message(t, back); !bytes.Equal(first, again) {
			t.Errorf("%s: %x after a round trip = %x, want the same", e.EventType(), first, again)
		}
	}
}

// TestEncryptedValueType: the members of 1.1, which the reference implementation of 1.0 does not
// have.
func TestEncryptedValueType(t *testing.T) {
	t.Parallel()
	value := &agui.ReasoningEncryptedValue{Subtype: agui.EncryptedMessage, EncryptedValue: "e", EncryptedValueType: "tv"}
	snapshot := &agui.MessagesSnapshot{Messages: []agui.Message{{
		ID: "m", Role: agui.RoleAssistant, EncryptedValue: "e", EncryptedValueType: "tm",
		ToolCalls: []agui.ToolCall{{ID: "c", EncryptedValue: "e", EncryptedValueType: "tc"}},
	}}}
	for _, tt := range []struct {
		event      agui.Event
		wantNumber protowire.Number
		wantText   string
	}{{value, 6, "tv"}, {snapshot, 14, "tm"}, {snapshot, 6, "tc"}} {
		got := message(t, tt.event)
		if field := protowire.AppendString(protowire.AppendTag(nil, tt.wantNumber, protowire.BytesType), tt.wantText); !bytes.Contains(got, field) {
			t.Errorf("encoded event = %x, want the field %x", got, field)
		}
		back, err := protobuf.Decode(got)
		if diff := cmp.Diff(tt.event, back); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// TestUnknownEventsAndValues: a value without a number is left out, as clients do, and an event
// without a number is recognized.
func TestUnknownEventsAndValues(t *testing.T) {
	t.Parallel()
	if _, err := protobuf.Append(nil, &agui.UnknownEvent{Type: "FUTURE"}); !errors.Is(err, protobuf.ErrUnknownEvent) {
		t.Errorf("Append of an unknown event: got %v, want %v", err, protobuf.ErrUnknownEvent)
	}
	future := protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), []byte{0x0a, 0x00})
	if _, err := protobuf.Decode(future); !errors.Is(err, protobuf.ErrUnknownEvent) {
		t.Errorf("Decode of an unknown event: got %v, want %v", err, protobuf.ErrUnknownEvent)
	}
	for in, want := range map[string]string{
		`{"type":"STATE_DELTA","delta":[{"op":"increment","path":"/a"},{"op":"remove","path":"/a","Path":"/b","by":1}]}`:                                                                         `{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a"}]}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"hologram"},{"type":"image","source":{"type":"torrent","value":"v"}},{"type":"text","text":"t"}],"x":1}`: `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"text","text":"t"}]}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"narrator","content":"c","name":"n"},{"id":"2","role":"user","content":"c"}]}`:                                                 `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"narrator"},{"id":"2","role":"user","content":"c"}]}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused","until":"noon"}}`:                                                                                          `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused"}}`,
	} {
		e, err := agui.Decode([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		back, err := protobuf.Decode(message(t, e))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := agui.Encode(back); string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
	known := append(message(t, &agui.StepStarted{StepName: "a"}), future...) // with unknown fields
	if e, err := protobuf.Decode(known); err != nil || e.EventType() != agui.EventStepStarted {
		t.Errorf("event with an unknown field: got %v %v, want STEP_STARTED", e, err)
	}
}

// TestPiecesOfMessageAreMerged: a message in several pieces is merged; of several values the last
// one counts.
func TestPiecesOfMessageAreMerged(t *testing.T) {
	t.Parallel()
	pieces := slicesOf(t, "7a080a02080e12026161", "7a060a0210071200", "7a03120162")
	e, err := protobuf.Decode(pieces)
	want := &agui.StepStarted{BaseEvent: agui.BaseEvent{Timestamp: 7}, StepName: "b"}
	if diff := cmp.Diff(agui.Event(want), e); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// slicesOf returns the bytes of hexadecimal texts.
func slicesOf(t *testing.T, pieces ...string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.Join(pieces, ""))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ hex, wantDetail string }{
		"nothing":                   {"", "no event"},
		"cut off":                   {"7a08", "malformed"},
		"a tag of field 0":          {"0200", "malformed"},
		"an unfinished varint":      {"ff", "malformed"},
		"two events":                {"7a040a02080e" + "8201040a02080f", "more than one event"},
		"an event in a varint":      {"7801", "no event"},
		"no base event":             {"7a03120161", "base event"},
		"another type in the base":  {"7a070a02080f120161", "of type 15, not 14"},
		"not UTF-8":                 {"7a070a02080e1201ff", "not UTF-8"},
		"a group left open":         {"7a040a02080e" + "9b06", "malformed"},
		"a value without a kind":    {"3a060a0208061200", "has no kind"},
		"a value of a later kind":   {"3a080a02080612023800", "has no kind"},
		"a number beyond JSON":      {"3a0f0a0208061209" + "11000000000000f07f", "not one of JSON"},
		"a patch without its value": {"42080a02080712021801", "/delta/0/value"},
		"a message without a role":  {"4a060a0208081200", "no role"},
		"two contents":              {"4a160a0208081210" + "120475736572" + "1a0178" + "42050a030a0178", "more than one form"},
		"two sources":               {"b2010e0a0208153a08" + "1206" + "0a04" + "0a00" + "1200", "more than one variant"},
	} {
		raw := slicesOf(t, tt.hex)
		e, err := protobuf.Decode(raw)
		if err == nil || !strings.Contains(err.Error(), tt.wantDetail) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, e, err, tt.wantDetail)
		}
	}
}

// TestDeepValues: a value may be nested as deeply as JSON. Its cost is proportional to its size.
func TestDeepValues(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", agui.MaxDepth) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("]", agui.MaxDepth)
	first := message(t, &agui.StateSnapshot{Snapshot: json.RawMessage(deep)})
	back, err := protobuf.Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	if got := back.(*agui.StateSnapshot).Snapshot; string(got) != deep {
		t.Errorf("value of %d bytes after a round trip = %d bytes, want the same", len(deep), len(got))
	}
	tooDeep := strings.Repeat("[", agui.MaxDepth+2) + strings.Repeat("]", agui.MaxDepth+2)
	if _, err := protobuf.Append(nil, &agui.StateSnapshot{Snapshot: json.RawMessage(tooDeep)}); err == nil {
		t.Error("Append of a value that is too deep: got no error, want one")
	}
	value := []byte{0x32, 0x00}
	for range agui.MaxDepth + 1 {
		value = protowire.AppendBytes([]byte{0x0a}, value) // an element
		value = protowire.AppendBytes([]byte{0x32}, value) // of a list
	}
	value = protowire.AppendBytes([]byte{0x0a, 0x02, 0x08, 0x06, 0x12}, value)
	if _, err := protobuf.Decode(protowire.AppendBytes([]byte{0x3a}, value)); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("Decode of a value that is too deep: got %v, want an error", err)
	}
}

// TestAppendDoesNotChangeEvent: events are shared between viewers, so writing must not change them.
func TestAppendDoesNotChangeEvent(t *testing.T) {
	t.Parallel()
	for _, e := range golden(t) {
		before, err := agui.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for range 2 { // for the race detector
			writers.Go(func() { _ = message(t, e) })
		}
		writers.Wait()
		if after, err := agui.Encode(e); !bytes.Equal(before, after) {
			t.Errorf("event %s after Append = %s (%v), want it unchanged", before, after, err)
		}
	}
}

// FuzzDecode checks that any bytes get a result, and that a decoded message can be written and read
// again.
func FuzzDecode(f *testing.F) {
	for _, e := range golden(f) {
		f.Add(message(f, e))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := protobuf.Decode(raw)
		if err != nil {
			return
		}
		e, _ = agui.Strip(e) // operations without a name are not written
		text, err := agui.Encode(e)
		if err != nil {
			t.Fatalf("%x was read as %+v, which cannot be encoded: %v", raw, e, err)
		}
		again, err := protobuf.Decode(message(t, e))
		if err != nil {
			t.Fatalf("%s cannot be read again: %v", text, err)
		}
		if second, err := agui.Encode(again); err != nil || !bytes.Equal(text, second) {
			t.Fatalf("%s after a round trip = %s (%v), want the same", text, second, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	e := &agui.TextMessageContent{MessageID: "run-1/2/model", Delta: " tokens"}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = protobuf.AppendFrame(buf[:0], e)
	}
}
