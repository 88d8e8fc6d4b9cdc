package openai

import (
	"encoding/json"

	"github.com/perdure/perdure/llm/internal/wire"
)

// sealed is what a block of reasoning keeps in [llm.Reasoning]: the provider's
// own item, and where it belongs. The API refuses reasoning without the very
// item that came after it.
type sealed struct {
	// Model is the one that was asked. Another may not be able to read the item.
	Model string `json:"model"`

	// Item is the reasoning item but for what only goes out.
	Item map[string]json.RawMessage `json:"item"`

	// Next is the item after it.
	Next successor `json:"next"`
}

// successor names the item that came after a reasoning item.
type successor struct {
	Type string `json:"type"`

	// ID is the provider's id of the item; a message or call has none elsewhere.
	ID string `json:"id,omitempty"`

	// Phase is what kind of message it is, if the model said so.
	Phase string `json:"phase,omitempty"`

	// Call is the id of the tool call.
	Call string `json:"call,omitempty"`
}

// place returns the part of an answer that is meant. There is one text in an answer.
func (s successor) place() string {
	if s.Type == typeCall {
		return typeCall + ":" + s.Call
	}
	return s.Type
}

// thought is the block of reasoning that an answer is at.
type thought struct {
	text    wire.Mender
	visible bool
	passage passage
	item    map[string]json.RawMessage // when it is done, if it can be sent back
}

// passage is a part of a block: what it is a part of, and its place there.
type passage struct {
	of    string
	index int64
}
