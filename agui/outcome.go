package agui

import "encoding/json"

// OutcomeType is how a run finished.
type OutcomeType string

// The outcomes of a run.
const (
	OutcomeSuccess   OutcomeType = "success"
	OutcomeInterrupt OutcomeType = "interrupt"
	OutcomeCancelled OutcomeType = "cancelled"
)

var outcomeTypes = []string{"success", "interrupt", "cancelled"}

// Outcome is the union RUN_FINISHED.outcome, discriminated by Type. Members of other variants are
// not encoded.
type Outcome struct {
	Type OutcomeType
	// PendingToolCallIDs (success) are exactly the calls that the run started and did not answer,
	// in order; nil means absent.
	PendingToolCallIDs []string
	// Interrupts (interrupt) has at least one entry.
	Interrupts []Interrupt
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

func (o *Outcome) fields(v visitor) {
	v.variant("type", (*string)(&o.Type), outcomeTypes)
	switch o.Type {
	case OutcomeSuccess:
		v.names("pendingToolCallIds", &o.PendingToolCallIDs)
	case OutcomeInterrupt:
		v.list("interrupts", nonEmptyListOf(&o.Interrupts), required)
	}
	v.unknown(&o.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (o Outcome) MarshalJSON() ([]byte, error) { return marshal(&o) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *Outcome) UnmarshalJSON(raw []byte) error { return unmarshal(raw, o) }

// Interrupt is something that a run needs from outside before it can continue, such as an approval
// or an answer.
type Interrupt struct {
	ID string
	// Reason is an open vocabulary: tool_call, input_required, confirmation, or <framework>:<name>.
	Reason     string
	Message    string
	ToolCallID string
	// ResponseSchema is the JSON Schema of the response, an object; nil means absent.
	ResponseSchema json.RawMessage
	// ExpiresAt is an ISO 8601 time by convention; the consumer interprets it.
	ExpiresAt     string
	SubagentRunID string
	Metadata      Metadata
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

func (i *Interrupt) fields(v visitor) {
	v.text("id", &i.ID, required)
	v.text("reason", &i.Reason, required)
	v.text("message", &i.Message, optional)
	v.text("toolCallId", &i.ToolCallID, optional)
	v.raw("responseSchema", &i.ResponseSchema, rawOptionalObject)
	v.text("expiresAt", &i.ExpiresAt, optional)
	v.text("subagentRunId", &i.SubagentRunID, optional)
	v.metadata("metadata", &i.Metadata)
	v.unknown(&i.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (i Interrupt) MarshalJSON() ([]byte, error) { return marshal(&i) }

// UnmarshalJSON implements json.Unmarshaler.
func (i *Interrupt) UnmarshalJSON(raw []byte) error { return unmarshal(raw, i) }

// TokenUsage contains the token counts of one provider and model. A nil count is unknown, which is
// different from zero. Reasoning and cached tokens are subsets of the input and output counts.
type TokenUsage struct {
	Provider              string
	Model                 string
	InputTokens           *int64
	OutputTokens          *int64
	TotalTokens           *int64
	ReasoningTokens       *int64
	CachedInputTokens     *int64
	CacheWriteInputTokens *int64
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

func (u *TokenUsage) fields(v visitor) {
	v.text("provider", &u.Provider, optional)
	v.text("model", &u.Model, optional)
	v.count("inputTokens", &u.InputTokens)
	v.count("outputTokens", &u.OutputTokens)
	v.count("totalTokens", &u.TotalTokens)
	v.count("reasoningTokens", &u.ReasoningTokens)
	v.count("cachedInputTokens", &u.CachedInputTokens)
	v.count("cacheWriteInputTokens", &u.CacheWriteInputTokens)
	v.unknown(&u.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (u TokenUsage) MarshalJSON() ([]byte, error) { return marshal(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *TokenUsage) UnmarshalJSON(raw []byte) error { return unmarshal(raw, u) }
