package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/perdure/perdure/llm"
)

// The types of items that an answer may consist of here.
const (
	typeReasoning = "reasoning"
	typeMessage   = "message"
	typeCall      = "function_call"
)

// storedReasoning returns the reasoning item as it can be sent back: nil if it cannot be,
// because the provider keeps nothing and neither the thoughts nor their
// encryption are in it. OpenAI refuses items with a status, which others add.
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

// train is reasoning and the item that it led to.
type train struct {
	thoughts []map[string]json.RawMessage
	next     successor
}

// trainsOf finds the reasoning of an answer by the place of what it led to.
// What it led to may be gone, such as a call that was never answered: then it
// is not asked for here, and not sent.
func (r *Responses) trainsOf(message llm.Message, model string) map[string]train {
	trains := map[string]train{}
	var thoughts []map[string]json.RawMessage
	for _, block := range message.Reasoning {
		var s sealed
		if block.Provider != r.config.Provider || json.Unmarshal(block.Data, &s) != nil || s.Model != model || s.Item == nil {
			continue
		}
		thoughts = append(thoughts, s.Item)
		if s.Next.Type == typeReasoning {
			continue
		}
		if _, taken := trains[s.Next.place()]; !taken {
			trains[s.Next.place()] = train{thoughts, s.Next}
		}
		thoughts = nil
	}
	return trains
}

// items returns the thoughts for a request. Blocks come back by way of clients:
// whatever is in one, it is sent as reasoning and as nothing else.
func (t train) items() []responses.ResponseInputItemUnionParam {
	items := make([]responses.ResponseInputItemUnionParam, 0, len(t.thoughts))
	for _, thought := range t.thoughts {
		thought["type"] = json.RawMessage(`"` + typeReasoning + `"`)
		item := param.Override[responses.ResponseReasoningItemParam](thought)
		items = append(items, responses.ResponseInputItemUnionParam{OfReasoning: &item})
	}
	return items
}

// think continues the block. Of a server that tells the thoughts as well as
// their summary, what comes first is taken.
func (a *response) think(at *item, p passage, literal json.RawMessage) {
	piece := a.Unquote(literal)
	at.heard = at.heard || piece != ""
	t := &a.thought
	if t.passage.of != "" && t.passage.of != p.of {
		return
	}
	text := t.text.Mend(piece)
	if text == "" {
		return
	}
	if t.visible && t.passage != p {
		text = "\n\n" + text
	}
	t.visible, t.passage = true, p
	a.Emit(llm.ReasoningDelta{Text: text})
}

// endReasoning closes the block when it is known what it led to; nil is nothing
// that could be sent back.
func (a *response) endReasoning(next *successor) {
	t := &a.thought
	if rest := t.text.Flush(); rest != "" {
		t.visible = true
		a.Emit(llm.ReasoningDelta{Text: rest})
	}
	var data json.RawMessage
	if t.item != nil && next != nil {
		data, _ = json.Marshal(sealed{a.req.Model, t.item, *next}) // it was JSON before
	}
	if t.visible || data != nil {
		a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: data})
	}
	a.thought = thought{}
}
