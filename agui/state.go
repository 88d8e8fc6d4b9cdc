package agui

import "encoding/json"

// StateSnapshot replaces the shared state.
type StateSnapshot struct {
	BaseEvent
	// Snapshot is any JSON value; nil is written as null.
	Snapshot      json.RawMessage
	SubagentRunID string
}

// EventType implements Event.
func (*StateSnapshot) EventType() EventType { return EventStateSnapshot }

func (e *StateSnapshot) fields(v visitor) {
	v.raw("snapshot", &e.Snapshot, rawRequired)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// StateDelta patches the shared state.
type StateDelta struct {
	BaseEvent
	// Delta is a JSON Patch (RFC 6902): an array of operations, which may be empty. Members that an
	// operation does not define are preserved.
	Delta         json.RawMessage
	SubagentRunID string
}

// EventType implements Event.
func (*StateDelta) EventType() EventType { return EventStateDelta }

func (e *StateDelta) fields(v visitor) {
	v.raw("delta", &e.Delta, rawPatch)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// MessagesSnapshot contains the complete list of messages that the producer owns.
type MessagesSnapshot struct {
	BaseEvent
	Messages []Message
}

// EventType implements Event.
func (*MessagesSnapshot) EventType() EventType { return EventMessagesSnapshot }

func (e *MessagesSnapshot) fields(v visitor) {
	v.list("messages", listOf(&e.Messages), required)
}
