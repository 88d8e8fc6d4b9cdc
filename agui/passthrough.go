package agui

import "encoding/json"

// Raw contains an event of another system.
type Raw struct {
	BaseEvent
	// Event is any JSON value; nil is written as null.
	Event json.RawMessage
	// Source is the name of that system; empty means absent.
	Source        string
	SubagentRunID string
}

// EventType implements Event.
func (*Raw) EventType() EventType { return EventRaw }

func (e *Raw) fields(v visitor) {
	v.raw("event", &e.Event, rawRequired)
	v.text("source", &e.Source, optional)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// Custom is an event of the application. Its name should have a vendor prefix.
type Custom struct {
	BaseEvent
	Name string
	// Value is any JSON value. nil is written as null, because clients reject the event without it.
	Value         json.RawMessage
	SubagentRunID string
}

// EventType implements Event.
func (*Custom) EventType() EventType { return EventCustom }

func (e *Custom) fields(v visitor) {
	v.text("name", &e.Name, required)
	v.raw("value", &e.Value, rawRequired)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
