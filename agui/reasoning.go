package agui

// ReasoningStart opens a reasoning span, which groups reasoning messages. Spans and reasoning
// messages have separate namespaces, so a span and its message can share one ID.
type ReasoningStart struct {
	BaseEvent
	MessageID     string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningStart) EventType() EventType { return EventReasoningStart }

func (e *ReasoningStart) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ReasoningEnd closes a reasoning span.
type ReasoningEnd struct {
	BaseEvent
	MessageID     string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningEnd) EventType() EventType { return EventReasoningEnd }

func (e *ReasoningEnd) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ReasoningMessageStart opens a reasoning message. The encoder writes its role, which is always
// "reasoning".
type ReasoningMessageStart struct {
	BaseEvent
	MessageID     string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningMessageStart) EventType() EventType { return EventReasoningMessageStart }

func (e *ReasoningMessageStart) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.constant("role", string(RoleReasoning))
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ReasoningMessageContent appends Delta to an open reasoning message.
type ReasoningMessageContent struct {
	BaseEvent
	MessageID     string
	Delta         string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningMessageContent) EventType() EventType { return EventReasoningMessageContent }

func (e *ReasoningMessageContent) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("delta", &e.Delta, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ReasoningMessageEnd closes an open reasoning message.
type ReasoningMessageEnd struct {
	BaseEvent
	MessageID     string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningMessageEnd) EventType() EventType { return EventReasoningMessageEnd }

func (e *ReasoningMessageEnd) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ReasoningMessageChunk combines start, content and end; see ChunkExpander. The first chunk of a
// message must have its ID.
type ReasoningMessageChunk struct {
	BaseEvent
	MessageID     string
	Delta         string
	SubagentRunID string
}

// EventType implements Event.
func (*ReasoningMessageChunk) EventType() EventType { return EventReasoningMessageChunk }

func (e *ReasoningMessageChunk) fields(v visitor) {
	v.text("messageId", &e.MessageID, optional)
	v.text("delta", &e.Delta, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// EncryptedSubtype is the kind of entity that an encrypted value belongs to.
type EncryptedSubtype string

// The subtypes of REASONING_ENCRYPTED_VALUE.
const (
	EncryptedToolCall EncryptedSubtype = "tool-call"
	EncryptedMessage  EncryptedSubtype = "message"
)

var encryptedSubtypes = []string{"tool-call", "message"}

// ReasoningEncryptedValue passes a provider's encrypted reasoning to the client. The client stores
// it in the tool call or message EntityID, and returns it in later requests.
type ReasoningEncryptedValue struct {
	BaseEvent
	Subtype        EncryptedSubtype
	EntityID       string
	EncryptedValue string
	// EncryptedValueType exists since protocol 1.1.
	EncryptedValueType string
	SubagentRunID      string
}

// EventType implements Event.
func (*ReasoningEncryptedValue) EventType() EventType { return EventReasoningEncryptedValue }

func (e *ReasoningEncryptedValue) fields(v visitor) {
	v.word("subtype", (*string)(&e.Subtype), required, encryptedSubtypes)
	v.text("entityId", &e.EntityID, required)
	v.text("encryptedValue", &e.EncryptedValue, required)
	v.text("encryptedValueType", &e.EncryptedValueType, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
