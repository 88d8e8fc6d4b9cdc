package agui

import "encoding/json"

// RunStarted opens a run.
type RunStarted struct {
	BaseEvent
	ThreadID string
	RunID    string
	// ProtocolVersion is the version the stream speaks, the producer's own
	// and never an echo of the request; see Version.
	ProtocolVersion string
	// ParentRunID is the run that spawned this one; it plays no part in resuming.
	ParentRunID string
	// Input may restate the request; the reducer appends its unknown messages.
	Input *RunAgentInput
}

// EventType implements Event.
func (*RunStarted) EventType() EventType { return EventRunStarted }

func (e *RunStarted) fields(v visitor) {
	v.text("threadId", &e.ThreadID, required)
	v.text("runId", &e.RunID, required)
	v.text("protocolVersion", &e.ProtocolVersion, optional)
	v.text("parentRunId", &e.ParentRunID, optional)
	v.object("input", oneOf(&e.Input), optional)
}

// RunFinished ends a run in order. Everything the run opened must be closed
// before it, whatever the outcome.
type RunFinished struct {
	BaseEvent
	ThreadID string
	RunID    string
	// Result is any value but null; nil means absent.
	Result json.RawMessage
	// Outcome is nil for success without further details.
	Outcome *Outcome
	// Usage has one entry per provider and model.
	Usage []TokenUsage
}

// EventType implements Event.
func (*RunFinished) EventType() EventType { return EventRunFinished }

func (e *RunFinished) fields(v visitor) {
	v.text("threadId", &e.ThreadID, required)
	v.text("runId", &e.RunID, required)
	v.raw("result", &e.Result, rawOptional)
	v.object("outcome", oneOf(&e.Outcome), optional)
	v.list("usage", listOf(&e.Usage), optional)
}

// RunError ends a run by failure; what is open may stay open.
type RunError struct {
	BaseEvent
	Message string
	// Code is an open vocabulary.
	Code  string
	Usage []TokenUsage
}

// EventType implements Event.
func (*RunError) EventType() EventType { return EventRunError }

func (e *RunError) fields(v visitor) {
	v.text("message", &e.Message, required)
	v.text("code", &e.Code, optional)
	v.list("usage", listOf(&e.Usage), optional)
}

// StepStarted opens a step, identified by its name and its owner.
type StepStarted struct {
	BaseEvent
	StepName      string
	SubagentRunID string
}

// EventType implements Event.
func (*StepStarted) EventType() EventType { return EventStepStarted }

func (e *StepStarted) fields(v visitor) {
	v.text("stepName", &e.StepName, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}

// StepFinished closes the step of the same name and owner.
type StepFinished struct {
	BaseEvent
	StepName      string
	SubagentRunID string
}

// EventType implements Event.
func (*StepFinished) EventType() EventType { return EventStepFinished }

func (e *StepFinished) fields(v visitor) {
	v.text("stepName", &e.StepName, required)
	v.text("subagentRunId", &e.SubagentRunID, optional)
}
