package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/perdure/perdure/llm"
)

// The types of output items that this package processes.
const (
	typeReasoning = "reasoning"
	typeMessage   = "message"
	typeCall      = "function_call"
)

// storedReasoning returns a reasoning item in the form of a request. It returns nil if the item
// cannot be sent back. Because the provider stores nothing, the item must contain its text or its
// encrypted content. The status is removed: OpenAI rejects it, and other servers add it.
func storedReasoning(raw json.RawMessage) map[string]json.RawMessage {
	var item map[string]json.RawMessage
	if json.Unmarshal([]byte(strings.ToValidUTF8(string(raw), "\uFFFD")), &item) != nil {
		return nil
	}
	if text(item["status"]) == "incomplete" {
		return nil
	}
	var content []json.RawMessage
	_ = json.Unmarshal(item["content"], &content)
	if text(item["encrypted_content"]) == "" && len(content) == 0 {
		return nil
	}
	delete(item, "status")
	return item
}

// reasoningChain is a sequence of reasoning items and the item that they led to.
type reasoningChain struct {
	thoughts []map[string]json.RawMessage // in order
	next     successor                    // the item after them
}

// reasoningChains returns the reasoning of a message by the place of the item that it led to.
// Reasoning whose item does not exist in the message is not looked up, and so not sent.
func (r *Responses) reasoningChains(message llm.Message, model string) map[string]reasoningChain {
	chains := map[string]reasoningChain{}
	var thoughts []map[string]json.RawMessage
	for _, block := range message.Reasoning {
		var s sealed
		// Another model may be unable to decrypt the item.
		if block.Provider != r.config.Provider || json.Unmarshal(block.Data, &s) != nil || s.Model != model || s.Item == nil {
			continue
		}
		thoughts = append(thoughts, s.Item)
		// Reasoning that led to reasoning belongs to the same chain.
		if s.Next.Type == typeReasoning {
			continue
		}
		if _, exists := chains[s.Next.key()]; !exists {
			chains[s.Next.key()] = reasoningChain{thoughts, s.Next}
		}
		thoughts = nil
	}
	return chains
}

// items returns the reasoning as input items. Clients can change the stored data, so the type is
// set to reasoning: a client cannot inject an item of another type.
func (t reasoningChain) items() []responses.ResponseInputItemUnionParam {
	items := make([]responses.ResponseInputItemUnionParam, 0, len(t.thoughts))
	for _, thought := range t.thoughts {
		thought["type"] = json.RawMessage(`"` + typeReasoning + `"`)
		item := param.Override[responses.ResponseReasoningItemParam](thought)
		items = append(items, responses.ResponseInputItemUnionParam{OfReasoning: &item})
	}
	return items
}

// think emits a fragment of reasoning. Some servers send both the full reasoning text and its
// summary; only the kind that arrives first is emitted. A blank line separates passages.
func (r *response) think(current *item, p passage, literal json.RawMessage) {
	piece := r.Unquote(literal)
	current.hasContent = current.hasContent || piece != ""
	block := &r.thought
	if block.passage.of != "" && block.passage.of != p.of {
		return
	}
	text := block.text.Mend(piece)
	if text == "" {
		return
	}
	if block.visible && block.passage != p {
		text = "\n\n" + text
	}
	block.visible, block.passage = true, p
	r.Emit(llm.ReasoningDelta{Text: text})
}

// endReasoning ends the open reasoning block. next is the item that the reasoning led to, which the
// block must know to be sent back. A nil next, or an item that cannot be sent back, results in a
// block that is only displayed.
func (r *response) endReasoning(next *successor) {
	block := &r.thought
	if rest := block.text.Flush(); rest != "" {
		block.visible = true
		r.Emit(llm.ReasoningDelta{Text: rest})
	}
	var data json.RawMessage
	if block.item != nil && next != nil {
		data, _ = json.Marshal(sealed{r.req.Model, block.item, *next}) // cannot fail: decoded from JSON
	}
	if block.visible || data != nil {
		r.Emit(llm.ReasoningEnd{Provider: r.model.config.Provider, Data: data})
	}
	r.thought = thought{}
}
