package openai

import (
	"bytes"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer turns the events of one completion into chunks.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text    wire.Mender
	refusal wire.Mender
	thought wire.Mender

	thinking string // member that the open block of reasoning comes in, or ""
	finished bool   // the finish reason has come
	done     bool   // [DONE] has come
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req}
}

// Over reports whether [DONE] has come.
func (a *answer) Over() bool { return a.done }

// Read takes one event.
func (a *answer) Read(event ssestream.Event) error {
	data := bytes.TrimSpace(event.Data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		a.done = true
		return nil
	}
	if event.Type == "error" {
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	}
	var chunk openai.ChatCompletionChunk
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &chunk) != nil {
		return wire.Malformed("an event of the stream is not a JSON object")
	}
	if wire.IsPresent(json.RawMessage(chunk.JSON.ExtraFields["error"].Raw())) {
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	}
	a.account(chunk)
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if err := a.choice(choice); err != nil {
			return err
		}
	}
	return nil
}

// account notes what the last chunk is to report. Usage may come in any
// chunk, in some servers in all of them, growing.
func (a *answer) account(chunk openai.ChatCompletionChunk) {
	a.SetModel(json.RawMessage(chunk.JSON.Model.Raw()))
	if chunk.JSON.Usage.Valid() {
		a.Finish.Usage = usage(chunk.Usage)
		if !a.finished {
			a.ReportUsage(a.Finish.Usage)
		}
	}
}

func (a *answer) choice(choice openai.ChatCompletionChunkChoice) error {
	delta := choice.Delta
	a.reason(delta)
	a.addText(&a.text, delta.JSON.Content)
	a.addText(&a.refusal, delta.JSON.Refusal)
	for i, piece := range delta.ToolCalls {
		if err := a.call(i, piece); err != nil {
			return err
		}
	}
	if reason, ok := wire.Unquote(choice.JSON.FinishReason.Raw()); ok && reason != "" {
		a.finished = true
		a.Finish.Reason = finishReason(reason)
	}
	return a.CheckSize()
}

func (a *answer) addText(mender *wire.Mender, field respjson.Field) {
	piece := a.Unquote(json.RawMessage(field.Raw()))
	if text := mender.Mend(piece); text != "" {
		a.endReasoning()
		a.Emit(llm.TextDelta{Text: text})
	}
}

// reasoningMembers are where servers put thinking; the API itself has no
// place for it. Some send both, with the same text.
var reasoningMembers = []string{"reasoning_content", "reasoning"}

func (a *answer) reason(delta openai.ChatCompletionChunkChoiceDelta) {
	for _, member := range reasoningMembers {
		piece := a.Unquote(json.RawMessage(delta.JSON.ExtraFields[member].Raw()))
		if piece == "" {
			continue
		}
		a.thinking = member
		if text := a.thought.Mend(piece); text != "" {
			a.Emit(llm.ReasoningDelta{Text: text})
		}
		return
	}
}

// endReasoning closes the open block. What the server wants back is the text
// under the name it came with; see reasoningFields.
func (a *answer) endReasoning() {
	if a.thinking == "" {
		return
	}
	if rest := a.thought.Flush(); rest != "" {
		a.Emit(llm.ReasoningDelta{Text: rest})
	}
	name, _ := json.Marshal(a.thinking)
	a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: name})
	a.thinking = ""
}

func (a *answer) call(position int, piece openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	slot := piece.Index
	if !piece.JSON.Index.Valid() {
		slot = int64(position)
	}
	id := a.Unquote(json.RawMessage(piece.JSON.ID.Raw()))
	name := a.Unquote(json.RawMessage(piece.Function.JSON.Name.Raw()))
	arguments := a.Unquote(json.RawMessage(piece.Function.JSON.Arguments.Raw()))
	a.endReasoning()
	return a.AddCall(slot, id, name, arguments)
}

// End closes the completion. One with its finish reason is whole, also if the usage that should
// follow is missing.
func (a *answer) End(err error) error {
	if !a.finished {
		return wire.Truncated(err)
	}
	a.endReasoning()
	if rest := a.text.Flush() + a.refusal.Flush(); rest != "" {
		a.Emit(llm.TextDelta{Text: rest})
	}
	return a.Close()
}

func finishReason(reason string) llm.FinishReason {
	switch reason {
	case "stop":
		return llm.FinishStop
	case "tool_calls", "function_call":
		return llm.FinishToolCalls
	case "length":
		return llm.FinishLength
	case "content_filter":
		return llm.FinishContentFilter
	default:
		return llm.FinishOther
	}
}

func usage(u openai.CompletionUsage) llm.Usage {
	return llm.Usage{
		Input:       count(u.PromptTokens, u.JSON.PromptTokens),
		Output:      count(u.CompletionTokens, u.JSON.CompletionTokens),
		Total:       count(u.TotalTokens, u.JSON.TotalTokens),
		Reasoning:   count(u.CompletionTokensDetails.ReasoningTokens, u.CompletionTokensDetails.JSON.ReasoningTokens),
		CachedInput: count(u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.JSON.CachedTokens),
		CacheWrite:  count(u.PromptTokensDetails.CacheWriteTokens, u.PromptTokensDetails.JSON.CacheWriteTokens),
	}
}

func count(n int64, field respjson.Field) *int64 {
	if !field.Valid() || n < 0 {
		return nil
	}
	return &n
}
