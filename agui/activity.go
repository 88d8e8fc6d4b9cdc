package agui

import "encoding/json"

// ActivitySnapshot creates or replaces an activity message.
type ActivitySnapshot struct {
	BaseEvent
	MessageID    string
	ActivityType string
	// Content is a JSON object.
	Content json.RawMessage
	// Replace false leaves an existing activity as it is; nil means true.
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

// ActivityDelta patches the content of a known activity message.
type ActivityDelta struct {
	BaseEvent
	MessageID    string
	ActivityType string
	// Patch is an RFC 6902 patch; it must leave the content an object.
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
