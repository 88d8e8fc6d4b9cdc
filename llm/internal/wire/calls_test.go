package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

type piece struct {
	slot                int64
	id, name, arguments string
}

// collect returns the tool calls of an answer in pieces.
func collect(t *testing.T, req *llm.Request, pieces ...piece) []llm.ToolCall {
	t.Helper()
	calls := NewCalls(req, 8)
	var chunks []llm.Chunk
	var err error
	for _, p := range pieces {
		if chunks, err = calls.Add(chunks, p.slot, p.id, p.name, p.arguments); err != nil {
			t.Fatal(err)
		}
	}
	if chunks, err = calls.Finish(chunks, true); err != nil {
		t.Fatal(err)
	}
	var collector llm.Collector
	for _, chunk := range chunks {
		collector.Add(chunk)
	}
	return collector.Message().ToolCalls
}

func TestCallIDs(t *testing.T) {
	t.Parallel()
	before := &llm.Request{Messages: []llm.Message{{ToolCalls: []llm.ToolCall{{ID: "call_0"}, {ID: "call_3"}}}}}
	for name, test := range map[string]struct {
		pieces []piece
		want   []string
	}{
		"own ids go on from the conversation's":   {[]piece{{slot: 0, name: "f"}, {slot: 1, name: "f"}}, []string{"call_4", "call_5"}},
		"an id of the conversation is taken":      {[]piece{{slot: 0, id: "call_0", name: "f"}}, []string{"call_4"}},
		"an id before the name is used":           {[]piece{{slot: 0, id: "x"}, {slot: 0, name: "f"}}, []string{"x"}},
		"an id after the name is ignored":         {[]piece{{slot: 0, name: "f"}, {slot: 0, id: "x"}}, []string{"call_4"}},
		"the order is that of the server's index": {[]piece{{slot: 2, id: "c", name: "f"}, {slot: 0, id: "a", name: "f"}, {slot: 1, id: "b", name: "f"}}, []string{"a", "b", "c"}},
		"a reused slot gets a new index":          {[]piece{{slot: 0, id: "a", name: "f"}, {slot: 0, id: "b", name: "f"}, {slot: 1, id: "c", name: "f"}}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			for _, call := range collect(t, before, test.pieces...) {
				ids = append(ids, call.ID)
			}
			if diff := cmp.Diff(test.want, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	calls := NewCalls(&llm.Request{}, 2)
	for i, slot := range []int64{0, 0, 0, 1 << 40} {
		_, err := calls.Add(nil, slot, string(rune('a'+i)), "f", "")
		var failure *llm.Error
		if got, want := errors.As(err, &failure) && failure.Code == llm.CodeResponseTooLarge, i >= 2; got != want {
			t.Errorf("call %d: error = %v, want ResponseTooLarge: %t", i, err, want)
		}
	}
}
