package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

// Sealer is implemented by an [Encoder] of a protocol whose reasoning must be sent back. The suite
// then checks that requests contain it.
type Sealer interface {
	// Seal ends the reasoning begun by Encoder.Reasoning, or is an encrypted block if there is
	// none. opaque is the signature or encrypted text, which must come back unchanged.
	Seal(opaque string) string
}

// testSealed checks that the reasoning before a tool call is sent back before that call, in order
// and unchanged, and never to another provider.
func testSealed(t *testing.T, p Provider) {
	if _, ok := p.NewEncoder().(Sealer); !ok {
		t.Skip("the provider wants nothing back")
	}
	const first, second = "opaque-Zmlyc3Q", "opaque-c2Vjb25k"
	body := make(chan string, 1)
	s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		body <- string(sent)
		e := p.NewEncoder()
		seal := e.(Sealer).Seal
		events(w, e.Begin(), e.Reasoning(`"Let me see."`), seal(first), seal(second),
			e.ToolCall(0, "call-a", "lookup"), e.Arguments(0, `"{\"q\":1}"`), e.Finish(llm.FinishToolCalls, llm.Usage{}))
	})
	outcome := s.finished(t)
	<-body
	blocks := outcome.Message.Reasoning
	if len(blocks) != 2 || blocks[0].Text != "Let me see." || blocks[1].Text != "" {
		t.Fatalf("reasoning is %+v, want a block that can be read and one that cannot", blocks)
	}
	for _, block := range blocks {
		if block.Provider == "" || block.Data == nil {
			t.Errorf("block %+v lacks its provider or what it wants back", block)
		}
	}
	again := func(answer llm.Message) string {
		req := request()
		req.Messages = append(req.Messages, answer, llm.Message{Role: llm.RoleTool, ToolCallID: "call-a", Parts: []llm.Part{llm.Text{Text: "1"}}})
		if err := Stream(t, t.Context(), s.model, req).Err; err != nil {
			t.Fatalf("the next request failed: %v", err)
		}
		return <-body
	}
	sent := again(outcome.Message)
	places := []int{strings.Index(sent, first), strings.Index(sent, second), strings.Index(sent, "call-a")}
	if places[0] < 0 || places[1] < places[0] || places[2] < places[1] {
		t.Errorf("the thoughts and their call stand at %v in what is sent: %s", places, sent)
	}
	foreign := outcome.Message
	foreign.Reasoning = []llm.Reasoning{{Provider: "another", Data: blocks[0].Data}, {Data: blocks[1].Data}}
	if sent := again(foreign); strings.Contains(sent, first) || strings.Contains(sent, second) {
		t.Errorf("the thoughts of another provider are sent: %s", sent)
	}
}
