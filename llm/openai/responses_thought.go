package openai

import (
	"encoding/json"

	"github.com/perdure/perdure/llm/internal/wire"
)

// sealed is the [llm.Reasoning.Data] of the Responses API: the reasoning item, and the item that
// came after it. The API rejects a reasoning item without its following item.
type sealed struct {
	// Model is the requested model. Another model may be unable to decrypt the item.
	Model string `json:"model"`

	// Item is the reasoning item, see storedReasoning.
	Item map[string]json.RawMessage `json:"item"`

	// Next identifies the item after it.
	Next successor `json:"next"`
}

// successor identifies the output item that follows a reasoning item.
type successor struct {
	// Type is the item's type: reasoning, message or function_call.
	Type string `json:"type"`

	// ID is the provider's item ID. Items of other APIs have none.
	ID string `json:"id,omitempty"`

	// Phase is the phase of a message, which later requests must preserve, or "".
	Phase string `json:"phase,omitempty"`

	// Call is the ID of the tool call, for a function_call.
	Call string `json:"call,omitempty"`
}

// key returns a key for the part of an [llm.Message] that the item became. All messages of a
// completion become one text.
func (s successor) key() string {
	if s.Type == typeCall {
		return typeCall + ":" + s.Call
	}
	return s.Type
}

// thought is the open reasoning block of a completion.
type thought struct {
	text    wire.Mender                // joins split characters
	visible bool                       // some text has been emitted
	passage passage                    // passage of the last text
	item    map[string]json.RawMessage // complete reasoning item; nil if it cannot be sent back
}

// passage identifies a part of a reasoning block: the kind of text and the index of the part.
type passage struct {
	of    string // event type, or "summary"
	index int64
}
