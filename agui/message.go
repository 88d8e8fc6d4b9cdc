package agui

import (
	"encoding/json"
	"slices"
)

// Role says who a message is from.
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleActivity  Role = "activity"
	RoleReasoning Role = "reasoning"
)

var (
	allRoles  = []string{"developer", "system", "assistant", "user", "tool", "activity", "reasoning"}
	textRoles = []string{"developer", "system", "assistant", "user"}
	toolRole  = []string{"tool"}
)

// Message is one message of a thread. The role decides which members exist on
// the wire; the others are not encoded, and when they are received they are
// kept in Unknown. Of a role that is none of ours, that is everything but the
// id: such a message is carried, not understood.
type Message struct {
	ID   string
	Role Role
	// Name is for developer, system, assistant and user messages.
	Name string
	// Content is text; for user and tool messages also parts; for activity
	// messages an object; for assistant messages it may be absent.
	Content Content
	// ToolCalls is for assistant messages.
	ToolCalls []ToolCall
	// ToolCallID and Error are for tool messages.
	ToolCallID string
	Error      string
	// ActivityType is for activity messages.
	ActivityType string
	// EncryptedValue is for all but activity messages; its type, new in 1.1, is
	// nothing without it.
	EncryptedValue     string
	EncryptedValueType string
	SubagentRunID      string
	Metadata           Metadata
	// Unknown holds undescribed members.
	Unknown map[string]json.RawMessage
}

func (m *Message) fields(v visitor) {
	v.text("id", &m.ID, required)
	v.variant("role", (*string)(&m.Role), allRoles)
	if !slices.Contains(allRoles, string(m.Role)) {
		v.unknown(&m.Unknown)
		return
	}
	m.roleFields(v)
	if m.Role != RoleActivity {
		encrypted(v, &m.EncryptedValue, &m.EncryptedValueType)
	}
	v.text("subagentRunId", &m.SubagentRunID, optional)
	v.metadata("metadata", &m.Metadata)
	v.unknown(&m.Unknown)
}

func (m *Message) roleFields(v visitor) {
	switch m.Role {
	case RoleDeveloper, RoleSystem:
		v.text("name", &m.Name, optional)
		v.content("content", &m.Content, contentText, required)
	case RoleAssistant:
		v.text("name", &m.Name, optional)
		v.content("content", &m.Content, contentText, optional)
		v.list("toolCalls", listOf(&m.ToolCalls), optional)
	case RoleUser:
		v.text("name", &m.Name, optional)
		v.content("content", &m.Content, contentText|contentParts, required)
	case RoleTool:
		v.text("toolCallId", &m.ToolCallID, required)
		v.content("content", &m.Content, contentText|contentParts, required)
		v.text("error", &m.Error, optional)
	case RoleActivity:
		v.text("activityType", &m.ActivityType, required)
		v.content("content", &m.Content, contentObject, required)
	case RoleReasoning:
		v.content("content", &m.Content, contentText, required)
	}
}

// encrypted shows a value and its type, which must not come without it.
func encrypted(v visitor, value, kind *string) {
	v.text("encryptedValue", value, optional)
	if *value != "" {
		v.text("encryptedValueType", kind, optional)
	}
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return marshal(&m) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(raw []byte) error { return unmarshal(raw, m) }

// ToolCall is a call an assistant message makes. On the wire it is
// {"id", "type":"function", "function":{"name","arguments"}}.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is text, by intent JSON; a cancelled run may cut it short.
	Arguments          string
	EncryptedValue     string
	EncryptedValueType string
	Metadata           Metadata
	// Unknown holds undescribed members of the call, FunctionUnknown those
	// of its "function" member.
	Unknown         map[string]json.RawMessage
	FunctionUnknown map[string]json.RawMessage
}

func (c *ToolCall) fields(v visitor) {
	v.text("id", &c.ID, required)
	v.constant("type", "function")
	v.object("function", functionSlot{c}, required)
	encrypted(v, &c.EncryptedValue, &c.EncryptedValueType)
	v.metadata("metadata", &c.Metadata)
	v.unknown(&c.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (c ToolCall) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ToolCall) UnmarshalJSON(raw []byte) error { return unmarshal(raw, c) }

// function is the wire object inside a ToolCall.
type function struct{ *ToolCall }

func (f function) fields(v visitor) {
	v.text("name", &f.Name, required)
	v.text("arguments", &f.Arguments, required)
	v.unknown(&f.FunctionUnknown)
}

// functionSlot is the slot of a tool call's function, which is a part of the ToolCall itself.
type functionSlot struct{ c *ToolCall }

func (s functionSlot) get() fielder  { return function{s.c} }
func (s functionSlot) fill() fielder { return function{s.c} }
func (s functionSlot) clear()        {}
