package reference

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/protobuf"
)

// corpus returns the golden events of package agui, and events that are hard to encode on the
// binary wire.
func corpus(t *testing.T) []json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("../../agui/testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	hard, err := os.ReadFile("testdata/hard.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var events []json.RawMessage
	for line := range strings.Lines(string(raw) + string(hard)) {
		events = append(events, json.RawMessage(strings.TrimSpace(line)))
	}
	return events
}

// codec is the reference codec @ag-ui/proto.
type codec struct{ *reference }

// reply is its answer to one job.
type reply struct {
	Bytes   []byte          `json:"bytes"`
	Event   json.RawMessage `json:"event"`
	Error   string          `json:"error"`
	Console []string        `json:"console"`
}

// encode encodes an event with the reference client.
func (c codec) encode(event json.RawMessage) (answer reply) {
	c.t.Helper()
	c.ask(map[string]any{"encode": event}, &answer)
	return answer
}

// decode decodes an event with the reference client.
func (c codec) decode(message []byte) (answer reply) {
	c.t.Helper()
	c.ask(map[string]any{"decode": message}, &answer)
	return answer
}

func TestCodecsAgree(t *testing.T) {
	t.Parallel()
	ref := codec{startReference(t, "proto", "codec.mjs")}
	for _, raw := range corpus(t) {
		e, err := agui.Decode(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		ours, err := protobuf.Append(nil, e)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		theirs := ref.encode(raw)
		if theirs.Error != "" || len(theirs.Console) > 0 && !isNewer(raw) {
			t.Errorf("%s: error of the reference = %s %q, want none", raw, theirs.Error, theirs.Console)
		}
		if !isNewer(raw) && !bytes.Equal(ours, theirs.Bytes) {
			t.Errorf("%s: encoded as\n%s\nwant\n%s", raw, hex.Dump(ours), hex.Dump(theirs.Bytes))
		}
		read := ref.decode(ours)
		if diff := cmp.Diff(onWire(t, raw), onWire(t, read.Event)); diff != "" || read.Error != "" || len(read.Console) > 0 {
			t.Errorf("%s: read by the reference with %s %q (-want +got):\n%s", raw, read.Error, read.Console, diff)
		}
		for _, message := range [][]byte{ours, theirs.Bytes} {
			back, err := protobuf.Decode(message)
			if err != nil {
				t.Errorf("%s: %v", raw, err)
				continue
			}
			text, err := agui.Encode(back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(onWire(t, raw), onWire(t, text)); diff != "" && !(isNewer(raw) && &message[0] != &ours[0]) {
				t.Errorf("%s: read as (-want +got):\n%s", raw, diff)
			}
		}
	}
}

// isNewer reports whether an event has members of AG-UI 1.1, which the reference codec drops.
func isNewer(raw json.RawMessage) bool { return bytes.Contains(raw, []byte(`"encryptedValueType"`)) }

// onWire returns an event as the binary wire can carry it: without open members of patch
// operations, and without empty lists where a list is optional.
func onWire(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	delete(e, "encryptedValueType")
	for _, name := range []string{"delta", "patch"} {
		ops, _ := e[name].([]any)
		for _, op := range ops {
			for member := range op.(map[string]any) {
				if !strings.Contains(" op path from value ", " "+member+" ") {
					delete(op.(map[string]any), member)
				}
			}
		}
	}
	dropEmpty(e, "usage")
	if outcome, ok := e["outcome"].(map[string]any); ok {
		dropEmpty(outcome, "pendingToolCallIds", "interruptIds")
	}
	if input, ok := e["input"].(map[string]any); ok {
		dropEmpty(input, "tools", "context", "resume")
		forget11(input["messages"])
	}
	forget11(e["messages"])
	return e
}

// forget11 removes members that AG-UI 1.1 added.
func forget11(messages any) {
	list, _ := messages.([]any)
	for _, m := range list {
		message := m.(map[string]any)
		delete(message, "encryptedValueType")
		dropEmpty(message, "toolCalls")
		calls, _ := message["toolCalls"].([]any)
		for _, call := range calls {
			delete(call.(map[string]any), "encryptedValueType")
		}
	}
}

// dropEmpty removes empty members.
func dropEmpty(object map[string]any, names ...string) {
	for _, name := range names {
		if list, ok := object[name].([]any); ok && len(list) == 0 {
			delete(object, name)
		}
	}
}

// TestInvalidFramesAreErrors: the binary wire has no frame that a client ignores silently. An empty
// frame ends its run, and an event of a later version makes it print a message.
func TestInvalidFramesAreErrors(t *testing.T) {
	t.Parallel()
	ref := codec{startReference(t, "proto", "codec.mjs")}
	if got := ref.decode([]byte{}); got.Error != "Error: Invalid event" {
		t.Errorf("empty frame: got %+v, want an invalid event", got)
	}
	if got := ref.decode([]byte{0x9a, 0x06, 0x00}); got.Error != "AGUIUnknownEventTypeError: Unknown event type" {
		t.Errorf("frame of a later version: got %+v, want an unknown type", got)
	}
}
