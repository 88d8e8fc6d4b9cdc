package agui

import (
	"encoding/json"
	"slices"
)

// Role is the author of a message.
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
	// The roles of all messages, of text messages, and of tool results.
	allRoles  = []string{"developer", "system", "assistant", "user", "tool", "activity", "reasoning"}
	textRoles = []string{"developer", "system", "assistant", "user"}
	toolRole  = []string{"tool"}
)

// Message is one message of a thread. The role determines which members exist on the wire. Other
// fields are not encoded, and other received members are stored in Unknown. For an unknown role
// these are all members except for the ID.
type Message struct {
	ID   string
	Role Role
	// Name is for developer, system, assistant and user messages.
	Name string
	// Content is text. User and tool messages can also have parts, activity messages have an
	// object, and assistant messages can have none.
	Content Content
	// ToolCalls is for assistant messages.
	ToolCalls []ToolCall
	// ToolCallID and Error are for tool messages.
	ToolCallID string
	Error      string
	// ActivityType is for activity messages.
	ActivityType string
	// EncryptedValue is for all messages except activity messages. EncryptedValueType, a member of
	// 1.1, exists only together with it.
	EncryptedValue     string
	EncryptedValueType string
	SubagentRunID      string
	Metadata           Metadata
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

// fields implements fielder. The role comes first, because it decides about the other members.
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

// roleFields shows the members that depend on the role.
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

// encrypted shows an encrypted value and its type. The type must not exist without the value.
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

// ToolCall is a tool call of an assistant message. On the wire it is {"id", "type":"function",
// "function":{"name","arguments"}}.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is text that should be JSON; a cancelled run can truncate it.
	Arguments          string
	EncryptedValue     string
	EncryptedValueType string
	Metadata           Metadata
	// Unknown contains members of the call that the protocol does not define, FunctionUnknown those
	// of its member "function".
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

// function is the wire object "function" of a ToolCall.
type function struct{ *ToolCall }

func (f function) fields(v visitor) {
	v.text("name", &f.Name, required)
	v.text("arguments", &f.Arguments, required)
	v.unknown(&f.FunctionUnknown)
}

// functionSlot is the slot of that object. Its members are fields of the ToolCall, so the slot is
// never empty.
type functionSlot struct{ c *ToolCall }

// get, fill and clear implement slot.
func (s functionSlot) get() fielder  { return function{s.c} }
func (s functionSlot) fill() fielder { return function{s.c} }
func (s functionSlot) clear()        {}
