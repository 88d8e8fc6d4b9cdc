package llmtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/llm"
)

// testToolCalls checks interleaved, incomplete and invalid tool calls.
func testToolCalls(t *testing.T, p Provider) {
	t.Run("interleaved", func(t *testing.T) {
		t.Parallel()
		outcome := play(t, p, func(e Encoder) []string {
			return []string{
				e.Begin(), e.Text(`"Looking."`),
				e.ToolCall(0, "a", "lookup"), e.ToolCall(1, "b", "search"),
				e.Arguments(0, `"{\"q\":"`), e.Arguments(1, `"{\"n\""`), e.Arguments(0, `""`),
				e.Arguments(0, `"1}"`), e.Arguments(1, `":2}"`),
				e.Finish(llm.FinishToolCalls, llm.Usage{}),
			}
		}).finished(t)
		want := []llm.ToolCall{{ID: "a", Name: "lookup", Arguments: `{"q":1}`}, {ID: "b", Name: "search", Arguments: `{"n":2}`}}
		if diff := cmp.Diff(want, outcome.Message.ToolCalls); diff != "" {
			t.Errorf("tool calls (-want +got):\n%s", diff)
		}
		if outcome.Finish.Reason != llm.FinishToolCalls {
			t.Errorf("reason is %q, want %q", outcome.Finish.Reason, llm.FinishToolCalls)
		}
		if outcome.Message.Text() != "Looking." {
			t.Errorf("text is %q", outcome.Message.Text())
		}
	})
	t.Run("arguments are streamed", func(t *testing.T) {
		t.Parallel()
		skipWholeCalls(t, p)
		outcome := play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.ToolCall(0, "a", "lookup"), e.Arguments(0, `"{"`), e.Arguments(0, `"}"`), e.Finish(llm.FinishToolCalls, llm.Usage{})}
		}).finished(t)
		want := []llm.Chunk{
			llm.ToolCallStart{Index: 0, ID: "a", Name: "lookup"},
			llm.ToolCallDelta{Index: 0, Arguments: "{"},
			llm.ToolCallDelta{Index: 0, Arguments: "}"},
		}
		if diff := cmp.Diff(want, outcome.Chunks[:len(outcome.Chunks)-1]); diff != "" {
			t.Errorf("chunks (-want +got):\n%s", diff)
		}
	})
	testToolCallIDs(t, p)
	t.Run("half a call at a token limit", func(t *testing.T) {
		t.Parallel()
		skipWholeCalls(t, p)
		outcome := play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.ToolCall(0, "a", "lookup"), e.Arguments(0, `"{\"q"`), e.Finish(llm.FinishLength, llm.Usage{})}
		}).finished(t)
		if outcome.Finish.Reason != llm.FinishLength {
			t.Errorf("reason is %q, want %q: the call is not complete", outcome.Finish.Reason, llm.FinishLength)
		}
	})
	t.Run("a call without a name", func(t *testing.T) {
		t.Parallel()
		play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.ToolCall(0, "a", ""), e.Arguments(0, `"{}"`), e.Finish(llm.FinishToolCalls, llm.Usage{})}
		}).failed(t, llm.CodeMalformedResponse)
	})
}

// skipWholeCalls skips a test of streamed arguments if the protocol sends calls as a whole.
func skipWholeCalls(t *testing.T, p Provider) {
	t.Helper()
	if p.WholeCalls {
		t.Skip("the protocol has whole calls only")
	}
}

// testToolCallIDs checks that every call has an ID of its own, because results are matched to calls
// by ID. Stream checks that the IDs are unique.
func testToolCallIDs(t *testing.T, p Provider) {
	for name, ids := range map[string][]string{
		"no id":                         {"", ""},
		"a repeated id":                 {"a", "a"},
		"an id and none":                {"call_2", ""},
		"a repeated id of three":        {"a", "a", "b"},
		"an id that looks like our own": {"", "call_1", "call_2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := play(t, p, func(e Encoder) []string {
				events := []string{e.Begin()}
				for i, id := range ids {
					events = append(events, e.ToolCall(i, id, "lookup"), e.Arguments(i, `"{}"`))
				}
				return append(events, e.Finish(llm.FinishToolCalls, llm.Usage{}))
			}).finished(t)
			want := make([]llm.ToolCall, len(ids))
			for i := range want {
				want[i] = llm.ToolCall{Name: "lookup", Arguments: "{}"}
			}
			if diff := cmp.Diff(want, outcome.Message.ToolCalls, cmpopts.IgnoreFields(llm.ToolCall{}, "ID")); diff != "" {
				t.Errorf("tool calls (-want +got):\n%s", diff)
			}
			if ids[0] != "" && outcome.Message.ToolCalls[0].ID != ids[0] {
				t.Errorf("the id is %q, want the server's own %q", outcome.Message.ToolCalls[0].ID, ids[0])
			}
		})
	}
}
