package agui

import (
	"encoding/json"
	"fmt"
)

// RunAgentInput is the request that starts a run: the one message a client
// sends to an agent.
type RunAgentInput struct {
	ThreadID string
	RunID    string
	// ParentRunID is the lineage of a child or branched run.
	ParentRunID string
	// ProtocolVersion is the peer's; empty means a peer from before 1.0.
	ProtocolVersion string
	// Messages is the complete history.
	Messages []Message
	// State is what deltas are computed against; nil means {}.
	State json.RawMessage
	// Tools are those the client runs itself.
	Tools []Tool
	// Context should be made visible to the model.
	Context []Context
	// ForwardedProps passes through everybody unchanged; nil means absent.
	ForwardedProps json.RawMessage
	// Resume answers the interrupts of the thread's last interrupted run.
	Resume []ResumeEntry
	// Unknown holds undescribed members.
	Unknown map[string]json.RawMessage
}

func (in *RunAgentInput) fields(v visitor) {
	v.text("threadId", &in.ThreadID, required)
	v.text("runId", &in.RunID, required)
	v.text("protocolVersion", &in.ProtocolVersion, optional)
	v.text("parentRunId", &in.ParentRunID, optional)
	v.raw("state", &in.State, rawOptional)
	v.list("messages", listOf(&in.Messages), required)
	v.list("tools", listOf(&in.Tools), optional)
	v.list("context", listOf(&in.Context), optional)
	v.raw("forwardedProps", &in.ForwardedProps, rawOptional)
	v.list("resume", listOf(&in.Resume), optional)
	v.unknown(&in.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (in RunAgentInput) MarshalJSON() ([]byte, error) { return marshal(&in) }

// UnmarshalJSON implements json.Unmarshaler. DecodeInput checks more.
func (in *RunAgentInput) UnmarshalJSON(raw []byte) error { return unmarshal(raw, in) }

// Tool is a tool offered to the model.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema, passed on unread; nil means absent.
	Parameters json.RawMessage
	Metadata   Metadata
	// Unknown holds undescribed members.
	Unknown map[string]json.RawMessage
}

func (t *Tool) fields(v visitor) {
	v.text("name", &t.Name, required)
	v.text("description", &t.Description, required)
	v.raw("parameters", &t.Parameters, rawOptional)
	v.metadata("metadata", &t.Metadata)
	v.unknown(&t.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (t Tool) MarshalJSON() ([]byte, error) { return marshal(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tool) UnmarshalJSON(raw []byte) error { return unmarshal(raw, t) }

// Context is one fact the client wants the model to know.
type Context struct {
	Description string
	Value       string
	// Unknown holds undescribed members.
	Unknown map[string]json.RawMessage
}

func (c *Context) fields(v visitor) {
	v.text("description", &c.Description, required)
	v.text("value", &c.Value, required)
	v.unknown(&c.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (c Context) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Context) UnmarshalJSON(raw []byte) error { return unmarshal(raw, c) }

// ResumeStatus says whether an interrupt was answered or abandoned.
type ResumeStatus string

// The statuses of a resume entry.
const (
	ResumeResolved  ResumeStatus = "resolved"
	ResumeCancelled ResumeStatus = "cancelled"
)

var resumeStatuses = []string{"resolved", "cancelled"}

// ResumeEntry answers one interrupt. A denial is resolved with a payload that
// says so; cancelled means abandoned and has no payload.
type ResumeEntry struct {
	InterruptID string
	Status      ResumeStatus
	// Payload is any value but null; nil means absent.
	Payload  json.RawMessage
	Metadata Metadata
	// Unknown holds undescribed members.
	Unknown map[string]json.RawMessage
}

func (r *ResumeEntry) fields(v visitor) {
	v.text("interruptId", &r.InterruptID, required)
	v.word("status", (*string)(&r.Status), required, resumeStatuses)
	v.raw("payload", &r.Payload, rawOptional)
	v.metadata("metadata", &r.Metadata)
	v.unknown(&r.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (r ResumeEntry) MarshalJSON() ([]byte, error) { return marshal(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ResumeEntry) UnmarshalJSON(raw []byte) error { return unmarshal(raw, r) }

// DecodeInput reads a request body. Beyond what Decode does for events it
// refuses empty ids of thread, run and messages, and message ids that appear
// twice. Every error is a *DecodeError that points at the offending member.
func DecodeInput(body []byte) (*RunAgentInput, error) {
	in := new(RunAgentInput)
	if err := unmarshal(body, in); err != nil {
		return nil, err
	}
	if err := in.checkIDs(); err != nil {
		return nil, err
	}
	return in, nil
}

func (in *RunAgentInput) checkIDs() error {
	if in.ThreadID == "" {
		return &DecodeError{Pointer: "/threadId", Detail: "must not be empty"}
	}
	if in.RunID == "" {
		return &DecodeError{Pointer: "/runId", Detail: "must not be empty"}
	}
	seen := make(map[string]int, len(in.Messages))
	for i, m := range in.Messages {
		pointer := fmt.Sprintf("/messages/%d/id", i)
		if m.ID == "" {
			return &DecodeError{Pointer: pointer, Detail: "must not be empty"}
		}
		if first, ok := seen[m.ID]; ok {
			return &DecodeError{Pointer: pointer, Detail: fmt.Sprintf("is the id of /messages/%d already", first)}
		}
		seen[m.ID] = i
	}
	return nil
}
