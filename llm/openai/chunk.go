package openai

import (
	"encoding/json"
	"errors"
)

// chunk is one event of Chat Completions (chat.completion.chunk), with the members that the package
// reads. decodeChunk ignores a member whose value has another type, because compatible servers send
// such values. Text fields stay undecoded JSON literals, because encoding/json would destroy a
// character that is split between two events ([wire.Unquote]).
type chunk struct {
	Model   json.RawMessage   `json:"model"`
	Choices []choice          `json:"choices"`
	Usage   object[chatUsage] `json:"usage"`
	Error   json.RawMessage   `json:"error"`
}

// choice is one alternative of the answer. Only the choice with index 0 is read.
type choice struct {
	Index        integer         `json:"index"`
	Delta        delta           `json:"delta"`
	FinishReason json.RawMessage `json:"finish_reason"`
}

// delta is the continuation of a choice.
type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ToolCalls        list[callDelta] `json:"tool_calls"`
}

// callDelta is the start or the continuation of a tool call.
type callDelta struct {
	Index    integer         `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function struct {
		Name      json.RawMessage `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// decodeChunk decodes an event. ok is false if data, which has no space at its start, is not a JSON
// object.
func decodeChunk(data []byte) (c chunk, ok bool) {
	if len(data) == 0 || data[0] != '{' {
		return chunk{}, false
	}
	err := json.Unmarshal(data, &c)
	if err == nil {
		return c, true
	}
	if _, isMistyped := errors.AsType[*json.UnmarshalTypeError](err); !isMistyped {
		return chunk{}, false
	}
	// The field of chunk does not have the type list, because an event would then take a third longer.
	var tolerant struct {
		Choices list[choice] `json:"choices"`
	}
	_ = json.Unmarshal(data, &tolerant) // never fails, see list
	c.Choices = tolerant.Choices
	return c, true
}
