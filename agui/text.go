package agui

// TextMessageStart opens a text message. A closed message may be opened again with the same role,
// name and owner; its content then continues.
type TextMessageStart struct {
	BaseEvent
	MessageID string
	// Role is user, assistant, system or developer; empty means assistant.
	Role          Role
	Name          string
	SubagentRunID string
}

// EventType implements Event.
func (*TextMessageStart) EventType() EventType { return EventTextMessageStart }

func (e *TextMessageStart) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.word("role", (*string)(&e.Role), optional, textRoles)
	v.text("name", &e.Name, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// TextMessageContent appends Delta to an open message. Delta may be empty.
type TextMessageContent struct {
	BaseEvent
	MessageID     string
	Delta         string
	SubagentRunID string
}

// EventType implements Event.
func (*TextMessageContent) EventType() EventType { return EventTextMessageContent }

func (e *TextMessageContent) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("delta", &e.Delta, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// TextMessageEnd closes an open message.
type TextMessageEnd struct {
	BaseEvent
	MessageID     string
	SubagentRunID string
}

// EventType implements Event.
func (*TextMessageEnd) EventType() EventType { return EventTextMessageEnd }

func (e *TextMessageEnd) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// TextMessageChunk combines start, content and end; see ChunkExpander. The first chunk of a message
// must have its ID.
type TextMessageChunk struct {
	BaseEvent
	MessageID     string
	Role          Role
	Name          string
	Delta         string
	SubagentRunID string
}

// EventType implements Event.
func (*TextMessageChunk) EventType() EventType { return EventTextMessageChunk }

func (e *TextMessageChunk) fields(v visitor) {
	v.text("messageId", &e.MessageID, optional)
	v.word("role", (*string)(&e.Role), optional, textRoles)
	v.text("name", &e.Name, optional)
	v.text("delta", &e.Delta, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
