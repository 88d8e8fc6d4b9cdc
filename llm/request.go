package llm

import "encoding/json"

// Request is the input of one completion, independent of the provider.
//
// A nil pointer leaves the option to the provider's default; the provider package then omits it
// from the API request. A provider package only reads a Request, so several calls may share one.
type Request struct {
	// Model is the provider's own name of the model, without Perdure's provider prefix.
	Model string

	// Messages is the conversation, oldest first. The caller must add a tool message for every tool
	// call of an assistant message before the next user message; provider APIs reject a
	// conversation with unanswered calls.
	Messages []Message

	// Tools are the tools that the model may call. Empty means that it may call none.
	Tools []Tool

	// Output describes the JSON that the answer must be; nil = any text.
	Output *Output

	// ParallelToolCalls allows or forbids more than one tool call in a completion. A provider sends
	// it only together with Tools.
	ParallelToolCalls *bool

	// MaxOutputTokens limits the tokens of the completion, including reasoning tokens.
	MaxOutputTokens *int

	// Temperature is the sampling temperature. 0 is a valid temperature; nil leaves the default.
	Temperature *float64

	// ReasoningEffort is how much the model reasons: minimal, low, medium or high. Empty is the
	// provider's default and is not sent. A provider translates it to its API, for instance to a
	// token budget. A model without reasoning may reject the request.
	ReasoningEffort string

	// IdempotencyKey identifies this completion to APIs that support idempotent requests. All
	// attempts of the same completion use the same key.
	IdempotencyKey string
}

// Output describes the JSON that the answer must be. A provider that supports structured output
// sends the schema, and its API constrains the model to it. That constraint is best effort: the
// caller also describes the schema in the prompt, and validates the answer.
type Output struct {
	// Schema is the JSON Schema of the answer.
	Schema json.RawMessage

	// Native controls whether the provider sends the schema to its API. true = yes, false = no, nil
	// = only if the endpoint is the vendor's own and the model is known to support it with these
	// tools. A provider never sends a schema that its API cannot express.
	Native *bool
}

// SendsSchema reports whether the provider sends the schema to its API. known is the answer for a
// nil Native: whether the endpoint and the model are known to support structured output. A nil
// Output returns false.
func (o *Output) SendsSchema(known bool) bool {
	switch {
	case o == nil:
		return false
	case o.Native != nil:
		return *o.Native
	}
	return known
}

// Tool describes one function that the model may call.
type Tool struct {
	// Name is unique within a request.
	Name string

	// Description tells the model when and how to call the tool.
	Description string

	// Parameters is the JSON Schema of the arguments. A provider sends it unchanged, including
	// member order and number literals. Empty means a tool without arguments.
	Parameters json.RawMessage
}
