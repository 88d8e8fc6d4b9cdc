package agui

// ToolCallStart opens a tool call. A closed call may be opened again with the same name, parent and
// owner.
type ToolCallStart struct {
	BaseEvent
	ToolCallID   string
	ToolCallName string
	// ParentMessageID is the assistant message that contains the call. Without it, a client creates
	// a message with the ID of the call.
	ParentMessageID string
	SubagentRunID   string
}

// EventType implements Event.
func (*ToolCallStart) EventType() EventType { return EventToolCallStart }

func (e *ToolCallStart) fields(v visitor) {
	v.text("toolCallId", &e.ToolCallID, required)
	v.text("toolCallName", &e.ToolCallName, required)
	v.text("parentMessageId", &e.ParentMessageID, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ToolCallArgs appends Delta to the arguments of an open call. The deltas form one text, which need
// not be valid JSON.
type ToolCallArgs struct {
	BaseEvent
	ToolCallID    string
	Delta         string
	SubagentRunID string
}

// EventType implements Event.
func (*ToolCallArgs) EventType() EventType { return EventToolCallArgs }

func (e *ToolCallArgs) fields(v visitor) {
	v.text("toolCallId", &e.ToolCallID, required)
	v.text("delta", &e.Delta, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ToolCallEnd closes a call: its arguments are complete. It does not mean that the tool has run.
type ToolCallEnd struct {
	BaseEvent
	ToolCallID    string
	SubagentRunID string
}

// EventType implements Event.
func (*ToolCallEnd) EventType() EventType { return EventToolCallEnd }

func (e *ToolCallEnd) fields(v visitor) {
	v.text("toolCallId", &e.ToolCallID, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ToolCallChunk combines start, arguments and end; see ChunkExpander. The first chunk of a call
// must have its ID and name.
type ToolCallChunk struct {
	BaseEvent
	ToolCallID      string
	ToolCallName    string
	ParentMessageID string
	Delta           string
	SubagentRunID   string
}

// EventType implements Event.
func (*ToolCallChunk) EventType() EventType { return EventToolCallChunk }

func (e *ToolCallChunk) fields(v visitor) {
	v.text("toolCallId", &e.ToolCallID, optional)
	v.text("toolCallName", &e.ToolCallName, optional)
	v.text("parentMessageId", &e.ParentMessageID, optional)
	v.text("delta", &e.Delta, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ToolCallResult adds a tool message with the result of a call. MessageID is the ID of the new
// message. Clients do not drop duplicates, so the ID must be the same in all attempts, and the
// event must be sent once.
type ToolCallResult struct {
	BaseEvent
	MessageID  string
	ToolCallID string
	// Content is text or parts.
	Content Content
	// Role is empty or RoleTool.
	Role          Role
	SubagentRunID string
}

// ToolCallResultOf returns the event that adds a tool message. AG-UI's event has no error: its metadata
// is all that tells of one.
func ToolCallResultOf(m Message) *ToolCallResult {
	return &ToolCallResult{
		BaseEvent: BaseEvent{Metadata: m.Metadata}, MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.Content, Role: m.Role, SubagentRunID: m.SubagentRunID,
	}
}

// EventType implements Event.
func (*ToolCallResult) EventType() EventType { return EventToolCallResult }

func (e *ToolCallResult) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("toolCallId", &e.ToolCallID, required)
	v.content("content", &e.Content, contentText|contentParts, required)
	v.word("role", (*string)(&e.Role), optional, toolRole)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
