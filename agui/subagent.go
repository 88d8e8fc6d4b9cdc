package agui

import "encoding/json"

// SubagentStarted announces an invocation of a subagent. Its ID is used once in a run; a later run
// may use it again to continue a suspended invocation.
type SubagentStarted struct {
	BaseEvent
	SubagentRunID string
	Name          string
	Description   string
	// ParentSubagentRunID is the subagent that started this one; it must have been announced in
	// this run. Empty means the parent agent.
	ParentSubagentRunID string
	ParentToolCallID    string
	ParentMessageID     string
}

// EventType implements Event.
func (*SubagentStarted) EventType() EventType { return EventSubagentStarted }

func (e *SubagentStarted) fields(v visitor) {
	v.text("subagentRunId", &e.SubagentRunID, required)
	v.text("name", &e.Name, required)
	v.text("description", &e.Description, optional)
	v.text("parentSubagentRunId", &e.ParentSubagentRunID, optional)
	v.text("parentToolCallId", &e.ParentToolCallID, optional)
	v.text("parentMessageId", &e.ParentMessageID, optional)
}

// SubagentFinished closes a subagent invocation.
type SubagentFinished struct {
	BaseEvent
	SubagentRunID string
	// Result is any value except null; nil means absent.
	Result json.RawMessage
	// Outcome is nil for success.
	Outcome *SubagentOutcome
}

// EventType implements Event.
func (*SubagentFinished) EventType() EventType { return EventSubagentFinished }

func (e *SubagentFinished) fields(v visitor) {
	v.text("subagentRunId", &e.SubagentRunID, required)
	v.raw("result", &e.Result, rawOptional)
	v.object("outcome", oneOf(&e.Outcome), optional)
}

// SubagentError ends a failed invocation of a subagent; the run continues.
type SubagentError struct {
	BaseEvent
	SubagentRunID string
	Message       string
	Code          string
}

// EventType implements Event.
func (*SubagentError) EventType() EventType { return EventSubagentError }

func (e *SubagentError) fields(v visitor) {
	v.text("subagentRunId", &e.SubagentRunID, required)
	v.text("message", &e.Message, required)
	v.text("code", &e.Code, optional)
}

// SubagentOutcomeType is how an invocation of a subagent finished.
type SubagentOutcomeType string

// The outcomes of a subagent invocation.
const (
	SubagentSuccess   SubagentOutcomeType = "success"
	SubagentSuspended SubagentOutcomeType = "suspended"
)

var subagentOutcomeTypes = []string{"success", "suspended"}

// SubagentOutcome is the union SUBAGENT_FINISHED.outcome, discriminated by Type.
type SubagentOutcome struct {
	Type SubagentOutcomeType
	// InterruptIDs (suspended) are the interrupts that the subagent waits for; nil means absent.
	InterruptIDs []string
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

func (o *SubagentOutcome) fields(v visitor) {
	v.variant("type", (*string)(&o.Type), subagentOutcomeTypes)
	if o.Type == SubagentSuspended {
		v.names("interruptIds", &o.InterruptIDs)
	}
	v.unknown(&o.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (o SubagentOutcome) MarshalJSON() ([]byte, error) { return marshal(&o) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *SubagentOutcome) UnmarshalJSON(raw []byte) error { return unmarshal(raw, o) }

// Owner returns the subagentRunId that an event is attributed to; "" = the parent agent. It does not
// handle chunks, whose owner the ChunkExpander determines.
func Owner(e Event) string {
	switch e := e.(type) {
	case *SubagentFinished:
		return e.SubagentRunID
	case *SubagentError:
		return e.SubagentRunID
	}
	if owner := subagentOf(e); owner != nil {
		return *owner
	}
	return ""
}

// Attribute attributes an event to a subagent. It changes the event, unless the event is attributed
// already or its type has no attribution.
func Attribute(e Event, subagentRunID string) {
	if owner := subagentOf(e); owner != nil && *owner == "" {
		*owner = subagentRunID
	}
}

// subagentOf returns a pointer to the attribution of an event; nil if its type has none. It does
// not handle chunks, whose owner the ChunkExpander determines.
func subagentOf(e Event) *string {
	switch e := e.(type) {
	case *TextMessageStart:
		return &e.SubagentRunID
	case *TextMessageContent:
		return &e.SubagentRunID
	case *TextMessageEnd:
		return &e.SubagentRunID
	case *ToolCallStart:
		return &e.SubagentRunID
	case *ToolCallArgs:
		return &e.SubagentRunID
	case *ToolCallEnd:
		return &e.SubagentRunID
	case *ToolCallResult:
		return &e.SubagentRunID
	case *StateSnapshot:
		return &e.SubagentRunID
	case *StateDelta:
		return &e.SubagentRunID
	case *StepStarted:
		return &e.SubagentRunID
	case *StepFinished:
		return &e.SubagentRunID
	case *ReasoningStart:
		return &e.SubagentRunID
	case *ReasoningEnd:
		return &e.SubagentRunID
	case *ReasoningMessageStart:
		return &e.SubagentRunID
	case *ReasoningMessageContent:
		return &e.SubagentRunID
	case *ReasoningMessageEnd:
		return &e.SubagentRunID
	case *Custom:
		return &e.SubagentRunID
	case *ActivitySnapshot:
		return &e.SubagentRunID
	case *ActivityDelta:
		return &e.SubagentRunID
	case *ReasoningEncryptedValue:
		return &e.SubagentRunID
	case *Raw:
		return &e.SubagentRunID
	}
	return nil
}
