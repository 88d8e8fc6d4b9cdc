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
	model *Model
	req   *llm.Request
	out   []llm.Chunk // made, not yet taken

	text    wire.Mender
	refusal wire.Mender
	thought wire.Mender
	calls   *wire.Calls

	thinking string // member that the open block of reasoning comes in, or ""
	content  int    // bytes received
	finish   llm.Finish
	finished bool // the finish reason has come
	done     bool // [DONE] has come
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{
		model:  m,
		req:    req,
		calls:  wire.NewCalls(req, m.limits.ToolCalls),
		finish: llm.Finish{Model: req.Model, Provider: m.config.Provider},
	}
}

func (a *answer) take() []llm.Chunk {
	chunks := a.out
	a.out = a.out[:0]
	return chunks
}

func (a *answer) over() bool { return a.done }

func (a *answer) read(event ssestream.Event) error {
	data := bytes.TrimSpace(event.Data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		a.done = true
		return nil
	}
	if event.Type == "error" {
		fault, _ := parseFault(data)
		return a.model.fault(a.req, fault)
	}
	var chunk openai.ChatCompletionChunk
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &chunk) != nil {
		return malformed("an event of the stream is not a JSON object")
	}
	if present(json.RawMessage(chunk.JSON.ExtraFields["error"].Raw())) {
		fault, _ := parseFault(data)
		return a.model.fault(a.req, fault)
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
	if model, ok := wire.Unquote(chunk.JSON.Model.Raw()); ok && model != "" {
		a.finish.Model = fixUTF8(model)
	}
	if chunk.JSON.Usage.Valid() {
		a.finish.Usage = usage(chunk.Usage)
		if !a.finished {
			a.out = append(a.out, llm.UsageReport{Usage: a.finish.Usage, Model: a.finish.Model, Provider: a.finish.Provider})
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
		a.finish.Reason = finishReason(reason)
	}
	if a.content > a.model.limits.ContentBytes {
		return wire.TooLarge("the completion has more than %d bytes", a.model.limits.ContentBytes)
	}
	return nil
}

func (a *answer) addText(mender *wire.Mender, field respjson.Field) {
	piece, _ := wire.Unquote(field.Raw())
	a.content += len(piece)
	if text := mender.Mend(piece); text != "" {
		a.endReasoning()
		a.out = append(a.out, llm.TextDelta{Text: text})
	}
}

// reasoningMembers are where servers put thinking; the API itself has no
// place for it. Some send both, with the same text.
var reasoningMembers = []string{"reasoning_content", "reasoning"}

func (a *answer) reason(delta openai.ChatCompletionChunkChoiceDelta) {
	for _, member := range reasoningMembers {
		piece, _ := wire.Unquote(delta.JSON.ExtraFields[member].Raw())
		if piece == "" {
			continue
		}
		a.content += len(piece)
		a.thinking = member
		if text := a.thought.Mend(piece); text != "" {
			a.out = append(a.out, llm.ReasoningDelta{Text: text})
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
		a.out = append(a.out, llm.ReasoningDelta{Text: rest})
	}
	name, _ := json.Marshal(a.thinking)
	a.out = append(a.out, llm.ReasoningEnd{Provider: a.model.config.Provider, Data: name})
	a.thinking = ""
}

func (a *answer) call(position int, piece openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	slot := piece.Index
	if !piece.JSON.Index.Valid() {
		slot = int64(position)
	}
	id, _ := wire.Unquote(piece.JSON.ID.Raw())
	name, _ := wire.Unquote(piece.Function.JSON.Name.Raw())
	arguments, _ := wire.Unquote(piece.Function.JSON.Arguments.Raw())
	a.content += len(id) + len(name) + len(arguments)
	a.endReasoning()
	var err error
	a.out, err = a.calls.Add(a.out, slot, id, name, arguments)
	return err
}

// end takes a completion that has its finish reason for whole: it is not thrown
// away for want of the usage that would have followed.
func (a *answer) end(err error) error {
	if !a.finished {
		return wire.Truncated(err)
	}
	if a.finish.Reason == llm.FinishStop && a.calls.Len() > 0 {
		a.finish.Reason = llm.FinishToolCalls
	}
	a.endReasoning()
	if rest := a.text.Flush() + a.refusal.Flush(); rest != "" {
		a.out = append(a.out, llm.TextDelta{Text: rest})
	}
	whole := a.finish.Reason == llm.FinishToolCalls || a.finish.Reason == llm.FinishStop
	a.out, err = a.calls.Finish(a.out, whole)
	if err != nil {
		return err
	}
	a.out = append(a.out, a.finish)
	return nil
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

func fixUTF8(s string) string {
	var m wire.Mender
	return m.Mend(s) + m.Flush()
}

func malformed(message string) *llm.Error {
	return &llm.Error{Code: llm.CodeMalformedResponse, Message: message}
}
