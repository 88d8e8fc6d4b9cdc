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

// sdkAnswer is an answer that decodes events with the types of the SDK.
type sdkAnswer struct{ *answer }

func (a *sdkAnswer) Read(event ssestream.Event) error {
	data := bytes.TrimSpace(event.Data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		a.done = true
		return nil
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

func (a *sdkAnswer) account(chunk openai.ChatCompletionChunk) {
	a.SetModel(json.RawMessage(chunk.JSON.Model.Raw()))
	if !chunk.JSON.Usage.Valid() {
		return
	}
	u := chunk.Usage
	a.Finish.Usage = llm.Usage{
		Input:       sdkCount(u.PromptTokens, u.JSON.PromptTokens),
		Output:      sdkCount(u.CompletionTokens, u.JSON.CompletionTokens),
		Total:       sdkCount(u.TotalTokens, u.JSON.TotalTokens),
		Reasoning:   sdkCount(u.CompletionTokensDetails.ReasoningTokens, u.CompletionTokensDetails.JSON.ReasoningTokens),
		CachedInput: sdkCount(u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.JSON.CachedTokens),
		CacheWrite:  sdkCount(u.PromptTokensDetails.CacheWriteTokens, u.PromptTokensDetails.JSON.CacheWriteTokens),
	}
	if !a.finished {
		a.ReportUsage(a.Finish.Usage)
	}
}

func (a *sdkAnswer) choice(choice openai.ChatCompletionChunkChoice) error {
	delta := choice.Delta
	a.reason(delta)
	a.addText(&a.text, json.RawMessage(delta.JSON.Content.Raw()))
	a.addRefusal(json.RawMessage(delta.JSON.Refusal.Raw()))
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

func (a *sdkAnswer) reason(delta openai.ChatCompletionChunkChoiceDelta) {
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

func (a *sdkAnswer) call(position int, piece openai.ChatCompletionChunkChoiceDeltaToolCall) error {
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

// sdkCount returns a count of the SDK; nil if it is missing, null, of another type or negative.
func sdkCount(n int64, field respjson.Field) *int64 {
	if !field.Valid() || n < 0 {
		return nil
	}
	return &n
}
