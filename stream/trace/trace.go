package trace

import (
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Bounds of a trace.
const (
	// MaxSpans bounds the spans of a trace. Later spans are left out.
	MaxSpans = 5000
	// MaxWithdrawn bounds the withdrawn content of one attempt, and MaxAllWithdrawn that of a
	// trace, in bytes.
	MaxWithdrawn    = 16 << 10
	MaxAllWithdrawn = 1 << 20
)

// Kind is the kind of a span.
type Kind string

// The kinds of spans.
const (
	KindRun          Kind = "run"
	KindTurn         Kind = "turn"
	KindStep         Kind = "step"
	KindModel        Kind = "model"
	KindTool         Kind = "tool"
	KindInterrupt    Kind = "interrupt"
	KindSubagent     Kind = "subagent"
	KindBranch       Kind = "branch"
	KindWait         Kind = "wait"
	KindCompensation Kind = "compensation"
)

// Status is how far a span, or an attempt, has come.
type Status string

// The statuses. A span that waits needs a decision, an answer or a result of people or the client.
const (
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusFinished  Status = "finished"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Run is the run of a trace, without its spans.
type Run struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// Agent and Revision are those with which the run began.
	Agent    string `json:"agent"`
	Revision string `json:"revision,omitempty"`
	// Continues is the run that this one continues without an input of its own; "" = none.
	Continues string `json:"continues,omitempty"`
	// Event is the event that started the run; nil = none did.
	Event  *stream.TriggerEvent `json:"event,omitempty"`
	Status Status               `json:"status"`
	// Outcome is success, interrupt, cancelled or error; "" while the run is active.
	Outcome   string     `json:"outcome,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Cursor is the position of the last record that the trace has.
	Cursor string `json:"cursor"`
	// Usage is that of the run's last event; while the run is active, the sum of the calls that have
	// ended.
	Usage []agui.TokenUsage `json:"usage,omitempty"`
	Cost  *Cost             `json:"cost,omitempty"`
	Error *Error            `json:"error,omitempty"`
	// Truncated tells that spans are left out, because they would be more than MaxSpans.
	Truncated bool `json:"truncated,omitempty"`
}

// Trace is a run with its spans, in the order in which they began.
type Trace struct {
	Run

	Spans []Span `json:"spans"`
}

// Span is a part of a run. The root is the run itself: it has no parent.
type Span struct {
	// ID is the same in every trace of the run.
	ID       string `json:"id"`
	ParentID string `json:"parentId,omitempty"`
	Kind     Kind   `json:"kind"`
	// Name is the name of the tool, model, step, agent or branch, or of the turn.
	Name      string     `json:"name"`
	Status    Status     `json:"status"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`

	ToolCallID    string `json:"toolCallId,omitempty"`
	MessageID     string `json:"messageId,omitempty"`
	InterruptID   string `json:"interruptId,omitempty"`
	StepName      string `json:"stepName,omitempty"`
	Agent         string `json:"agent,omitempty"`
	Model         string `json:"model,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
	// Decision is how an interrupt was decided: approve, edit, reject, answer, cancel, expire,
	// result or abandon.
	Decision string `json:"decision,omitempty"`
	// Awaits is what an interrupt waits for that nobody is asked about; nil = people or the client decide it.
	Awaits *Awaited `json:"awaits,omitempty"`

	Usage *agui.TokenUsage `json:"usage,omitempty"`
	Cost  *Cost            `json:"cost,omitempty"`
	Error *Error           `json:"error,omitempty"`
	// Attempts are all attempts, if there was more than one, or one has failed or waited.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Retry is set while a failed call is attempted again.
	Retry *Retry `json:"retry,omitempty"`
	// FirstCursor is the position of the first event of the span in the thread's log, LastCursor is
	// after the last one. Cursors of events sort as texts.
	FirstCursor string `json:"firstCursor,omitempty"`
	LastCursor  string `json:"lastCursor,omitempty"`
}

// Awaited is a time or an event for which a run waits.
type Awaited struct {
	stream.Wait
	// Until is when the time comes, or the event is awaited no longer.
	Until time.Time `json:"until,omitzero"`
}

// Attempt is one attempt of a call.
type Attempt struct {
	// Number counts from 1.
	Number    int        `json:"number"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Status    Status     `json:"status"`
	Error     *Error     `json:"error,omitempty"`
	// Model is the model that the attempt has called, as provider/model; "" = it has called none.
	Model string `json:"model,omitempty"`
	// Wait is how long the attempt has waited before it could call its model; nil = it has not.
	Wait *AdmissionWait `json:"wait,omitempty"`
	// Usage is that of the attempt's model call. Input is an estimate until the provider reports
	// it, Output may be a lower bound.
	Usage *agui.TokenUsage `json:"usage,omitempty"`
	// Withdrawn is what the attempt had streamed before it was superseded; nil = nothing.
	Withdrawn *Withdrawn `json:"withdrawn,omitempty"`
}

// AdmissionWait is the time that a model call has waited because of a limit of the workers or of its provider.
type AdmissionWait struct {
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is missing while the call waits.
	EndedAt *time.Time `json:"endedAt,omitempty"`
}

// Withdrawn is what an attempt has streamed, and clients have dropped.
type Withdrawn struct {
	Text      string          `json:"text,omitempty"`
	Reasoning string          `json:"reasoning,omitempty"`
	ToolCalls []WithdrawnCall `json:"toolCalls,omitempty"`
	// Truncated tells that more was streamed.
	Truncated bool `json:"truncated,omitempty"`
}

// WithdrawnCall is a tool call that was withdrawn before it was made. Arguments may be cut.
type WithdrawnCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Retry tells that a call is attempted again after failures.
type Retry struct {
	// Attempt is the number of the next attempt, or of the one that is running.
	Attempt int `json:"attempt"`
	// Error is that of the last failure, Since the time of the first one.
	Error *Error    `json:"error"`
	Since time.Time `json:"since"`
	// NextAt is about when the next attempt begins; nil = it is running, or the time is unknown.
	NextAt *time.Time `json:"nextAt,omitempty"`
}

// Error is why a span or an attempt has failed.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Hint is what to do about it; "" = nothing is known.
	Hint string `json:"hint,omitempty"`
}

// Cost is an amount of money.
type Cost struct {
	Amount agents.Money `json:"amount"`
	// Currency is known when the run has ended.
	Currency string `json:"currency,omitempty"`
}
