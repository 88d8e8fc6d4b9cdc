package llmtest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

// testSealedReasoning: what a provider wants back it gets back, in order, with
// the calls that it thought about; nobody else does.
func testSealedReasoning(t *testing.T, p Provider) {
	if p.Seals == nil {
		t.Skip("the protocol wants no reasoning back")
	}
	answer := play(t, p, func(e Encoder) []string {
		sealed := e.(Sealer).Sealed
		return []string{
			e.Begin(), sealed(`"First this."`, "seal-1"), sealed(`""`, "seal-2"), e.Text(`"Well, "`),
			sealed(`"Then \ud83d\ude00."`, "seal-3"), e.ToolCall(0, "a", "lookup"), e.Arguments(0, `"{}"`), e.Finish(llm.FinishToolCalls, llm.Usage{}),
		}
	}).finished(t).Message
	for name, test := range map[string]struct {
		change func(*llm.Reasoning)
		want   []string
	}{
		"as it came":              {func(*llm.Reasoning) {}, []string{"seal-1", "seal-2", "seal-3"}},
		"through a log":           {throughLog(t), []string{"seal-1", "seal-2", "seal-3"}},
		"of another provider":     {func(r *llm.Reasoning) { r.Provider = "another" }, nil},
		"without what was sealed": {func(r *llm.Reasoning) { r.Data = nil }, nil},
		"that is something else":  {func(r *llm.Reasoning) { r.Data = json.RawMessage(`["what?"]`) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := answer
			message.Reasoning = nil
			for _, block := range answer.Reasoning {
				test.change(&block)
				message.Reasoning = append(message.Reasoning, block)
			}
			if diff := cmp.Diff(test.want, p.Seals(sentAfter(t, p, message))); diff != "" {
				t.Errorf("seals sent back (-want +got):\n%s", diff)
			}
		})
	}
}

// throughLog keeps a block as text, as the log does.
func throughLog(t *testing.T) func(*llm.Reasoning) {
	return func(block *llm.Reasoning) {
		line, err := json.Marshal(block)
		if err != nil {
			t.Fatal(err)
		}
		*block = llm.Reasoning{}
		if err := json.Unmarshal(line, block); err != nil {
			t.Fatal(err)
		}
	}
}

// sentAfter is the request that gives an answer's calls their results.
func sentAfter(t *testing.T, p Provider, answer llm.Message) []byte {
	t.Helper()
	s := play(t, p, func(e Encoder) []string {
		return []string{e.Begin(), e.Text(`"Done."`), e.Finish(llm.FinishStop, llm.Usage{})}
	})
	req := request()
	req.Messages = append(req.Messages, answer)
	for _, call := range answer.ToolCalls {
		req.Messages = append(req.Messages, llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, Parts: []llm.Part{llm.Text{Text: "42"}}})
	}
	if outcome := Stream(t, t.Context(), s.model, req); outcome.Err != nil {
		t.Fatalf("stream failed: %v", outcome.Err)
	}
	return *s.body.Load()
}
