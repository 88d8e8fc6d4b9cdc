package agui

// ToolCallStart opens a tool call. A closed id may be opened again with the
// same name, parent and owner.
type ToolCallStart struct {
	BaseEvent
	ToolCallID   string
	ToolCallName string
	// ParentMessageID is the assistant message that holds the call. Without
	// it a client makes a message whose id is the tool call's.
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

// ToolCallArgs appends a fragment to the call's arguments. The fragments make
// one text; nothing promises that it is valid JSON.
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

// ToolCallEnd says that the arguments are complete, not that the tool ran.
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

// ToolCallChunk is start, arguments and end in one; see ChunkExpander. The
// first chunk of a call must have its id and name.
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

// ToolCallResult answers a tool call with a new tool message of its own id.
// Clients do not drop duplicates, so the id must be stable over retries and
// the event sent once.
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

// EventType implements Event.
func (*ToolCallResult) EventType() EventType { return EventToolCallResult }

func (e *ToolCallResult) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("toolCallId", &e.ToolCallID, required)
	v.content("content", &e.Content, contentText|contentParts, required)
	v.word("role", (*string)(&e.Role), optional, toolRole)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
