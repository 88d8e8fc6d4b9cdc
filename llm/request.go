package llm

import "encoding/json"

// Request is everything a provider is told about one completion.
//
// A nil pointer means "the provider's default" and is not sent.
type Request struct {
	// Model is the provider's own name of the model, without our provider prefix.
	Model string

	// Messages is the conversation, oldest first. It is the caller's task to
	// answer every tool call of an assistant message before the next user message.
	Messages []Message

	// Tools are the tools the model may call. Empty means that it may call none.
	Tools []Tool

	// Output is what the answer has to be; nil = any text.
	Output *Output

	// ParallelToolCalls allows or forbids more than one tool call in a
	// completion. It is sent only together with Tools.
	ParallelToolCalls *bool

	// MaxOutputTokens bounds the completion, reasoning included.
	MaxOutputTokens *int

	// Temperature is the sampling temperature; 0 is a value of its own.
	Temperature *float64

	// ReasoningEffort is how much the model thinks: minimal, low, medium or
	// high. Empty is the provider's default, and not sent. A provider passes it
	// on in its own terms; a model that cannot do it may refuse the request.
	ReasoningEffort string

	// IdempotencyKey names this completion to providers that recognize a
	// repeated request. Attempts of the same completion share it.
	IdempotencyKey string
}

// Output is the JSON that an answer has to be. A provider that can hold its model to a schema does
// so, as far as it can: whoever asks also says it in words, and checks the answer.
type Output struct {
	// Schema is the JSON Schema of the answer.
	Schema json.RawMessage

	// Native tells whether the provider is handed the schema. nil = if the endpoint is the vendor's
	// own, and known to take it for this model, with these tools. A schema for which the API has no
	// form is never handed over.
	Native *bool
}

// Hands reports whether the provider is handed the schema of an answer; known is what it is where
// nobody has said so.
func (o *Output) Hands(known bool) bool {
	switch {
	case o == nil:
		return false
	case o.Native != nil:
		return *o.Native
	}
	return known
}

// Tool is one function the model may call.
type Tool struct {
	// Name is unique within a request.
	Name string

	// Description tells the model when and how to call the tool.
	Description string

	// Parameters is the JSON Schema of the arguments, passed on unchanged.
	// Empty means a tool without arguments.
	Parameters json.RawMessage
}
