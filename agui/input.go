package agui

import (
	"encoding/json"
	"fmt"
)

// RunAgentInput is the request that starts a run.
type RunAgentInput struct {
	ThreadID string
	RunID    string
	// ParentRunID is the run that a child or branched run descends from.
	ParentRunID string
	// ProtocolVersion is the client's version; empty means a client from before 1.0.
	ProtocolVersion string
	// Messages is the complete history of the thread.
	Messages []Message
	// State is the state that deltas apply to; nil means {}.
	State json.RawMessage
	// Tools are the tools that the client itself executes.
	Tools []Tool
	// Context contains facts that the model should see.
	Context []Context
	// ForwardedProps is opaque data for the agent; nil means absent.
	ForwardedProps json.RawMessage
	// Resume responds to the interrupts of the thread's last interrupted run.
	Resume []ResumeEntry
	// Unknown contains members that the protocol does not define.
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

// UnmarshalJSON implements json.Unmarshaler. DecodeInput performs additional checks.
func (in *RunAgentInput) UnmarshalJSON(raw []byte) error { return unmarshal(raw, in) }

// Tool is a tool that the client offers to the model.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema, which this package does not interpret; nil means absent.
	Parameters json.RawMessage
	Metadata   Metadata
	// Unknown contains members that the protocol does not define.
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

// Context is one fact that the client provides to the model.
type Context struct {
	Description string
	Value       string
	// Unknown contains members that the protocol does not define.
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

// ResumeStatus is how the client responds to an interrupt.
type ResumeStatus string

// The statuses of a resume entry.
const (
	ResumeResolved  ResumeStatus = "resolved"
	ResumeCancelled ResumeStatus = "cancelled"
)

var resumeStatuses = []string{"resolved", "cancelled"}

// ResumeEntry is the response to one interrupt. A denial is resolved with a payload that expresses
// it; cancelled means abandoned, without a payload.
type ResumeEntry struct {
	InterruptID string
	Status      ResumeStatus
	// Payload is any value except null; nil means absent.
	Payload  json.RawMessage
	Metadata Metadata
	// Unknown contains members that the protocol does not define.
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

// DecodeInput decodes a request body. In addition to the checks of Decode, it rejects empty IDs of
// thread, run and messages, message IDs that occur twice, lists with more than 10,000 entries, and
// more than MaxValues values. The error is a *DecodeError that points to the member.
func DecodeInput(body []byte) (*RunAgentInput, error) {
	if err := CheckValues(body); err != nil {
		return nil, err
	}
	in := new(RunAgentInput)
	if err := unmarshalWith(&decoder{bounded: true}, body, in); err != nil {
		return nil, err
	}
	if err := in.checkIDs(); err != nil {
		return nil, err
	}
	return in, nil
}

// checkIDs checks the IDs that DecodeInput requires.
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
