package agui

import "encoding/json"

// RunStarted begins a run.
type RunStarted struct {
	BaseEvent
	ThreadID string
	RunID    string
	// ProtocolVersion is the version of the stream: the producer's own, not an echo of the request;
	// see Version.
	ProtocolVersion string
	// ParentRunID is the run that started this one. It is informative, and not used to resume.
	ParentRunID string
	// Input can repeat the request; the reducer appends the messages of it that it does not know.
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

// RunFinished ends a run regularly. Everything that the run has opened must be closed before it,
// whatever the outcome.
type RunFinished struct {
	BaseEvent
	ThreadID string
	RunID    string
	// Result is any value except null; nil means absent.
	Result json.RawMessage
	// Outcome is nil for success without details.
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

// RunError ends a failed run. Messages, tool calls and steps may still be open.
type RunError struct {
	BaseEvent
	Message string
	// Code is an open vocabulary; empty means absent.
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

// StepStarted begins a step. Name and owner identify it.
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

// StepFinished ends the step with the same name and owner.
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
