package agui

import "encoding/json"

// ActivitySnapshot creates or replaces an activity message.
type ActivitySnapshot struct {
	BaseEvent
	MessageID    string
	ActivityType string
	// Content is a JSON object.
	Content json.RawMessage
	// Replace = false keeps an existing activity unchanged; nil means true.
	Replace       *bool
	SubagentRunID string
}

// EventType implements Event.
func (*ActivitySnapshot) EventType() EventType { return EventActivitySnapshot }

func (e *ActivitySnapshot) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("activityType", &e.ActivityType, required)
	v.raw("content", &e.Content, rawObject)
	v.flag("replace", &e.Replace)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// ActivityDelta patches the content of an existing activity message.
type ActivityDelta struct {
	BaseEvent
	MessageID    string
	ActivityType string
	// Patch is a JSON Patch (RFC 6902). Its result must be an object.
	Patch         json.RawMessage
	SubagentRunID string
}

// EventType implements Event.
func (*ActivityDelta) EventType() EventType { return EventActivityDelta }

func (e *ActivityDelta) fields(v visitor) {
	v.text("messageId", &e.MessageID, required)
	v.text("activityType", &e.ActivityType, required)
	v.raw("patch", &e.Patch, rawPatch)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
