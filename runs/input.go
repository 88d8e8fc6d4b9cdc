package runs

import (
	"slices"
	"time"
)

// Input starts a run (agent.run.v1), and carries it on from one execution to the next. It refers to
// the agent's definition by revision and to the client's input by its sequence in the log.
type Input struct {
	Run Ref `json:"run"`
	AgentRef
	Continuation
	// Input is the sequence of the proposed input in the log, Digest the digest of its decoded
	// content. Both are zero in a run that continues another one without an input.
	Input  uint64 `json:"input"`
	Digest string `json:"digest"`
	// Token is the run's value in search attributes. A run has it if it was offered to a running
	// workflow of its thread, or continues another one without an input: its execution begins with
	// the search attributes of the run before it.
	Token string `json:"token,omitempty"`

	// ParkAfter is how long the run waits for an interrupt, or while it is paused, before it is
	// parked; 0 means DefaultParkAfter.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`

	// Trace is the W3C trace context (header traceparent) of the request that started the run.
	Trace string `json:"trace,omitempty"`

	// FiringID is the workflow ID of the firing (schedule.fire) that started the run; "" = none.
	// When the run is over, and no run continues it, the thread signals its end to the firing.
	FiringID string `json:"firingId,omitempty"`

	// BeginsTitle tells that the run may be the first of its thread, and that its agent has a model for
	// titles.
	BeginsTitle bool `json:"beginsTitle,omitempty"`

	// Hold keeps the AG-UI run open while it waits for interrupts. Subagents and branches always
	// hold.
	Hold bool `json:"hold,omitempty"`
	// OnNewInput says what becomes of an input that leaves approvals or questions open after the
	// run's end; "" means OpenReject. OnMissingResult says the same for the client's tool calls; ""
	// means that the thread does not wait for their results.
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissingResult,omitempty"`

	// Queue are the runs that wait for the thread, oldest first. None has a queue of its own.
	Queue []Input `json:"queue,omitempty"`
}

// Continuation is what a run takes over from the run or the execution before it. The zero value
// begins a run from its input.
type Continuation struct {
	// HandedOver is how the thread came to the run's agent by handoffs; nil = there were none.
	HandedOver *HandoffTrail `json:"handedOver,omitempty"`
	// Resume has the decided interrupts of the run before, which this run continues; nil = there
	// are none.
	Resume *Interrupts `json:"resume,omitempty"`
	// Continues is the ID of the run before, in a run that continues it without an input.
	Continues string `json:"continues,omitempty"`
	// BegunBy is the Temporal run ID of the execution that had the run before this one; "" = there
	// was none. It may have begun this run in a workflow task that was lost, so the run's records
	// carry this ID wherever the run is executed.
	BegunBy string `json:"begunBy,omitempty"`
	// Cancelled tells that the run before was cancelled while it ended with interrupts: this one
	// only compensates.
	Cancelled bool `json:"cancelled,omitempty"`
	// AnswersOnly tells that the input only repeats answers to decided interrupts: the run ends at
	// once.
	AnswersOnly bool `json:"answersOnly,omitempty"`
	// After is the path of the step of the agent's pipeline after which the run begins, in a fork; "" =
	// at the first step.
	After string `json:"after,omitempty"`
	// Progress is set where an execution continues the run of the one before it.
	Progress *Progress `json:"progress,omitempty"`
}

// TraceParent returns the trace context of the request that started the run; "" = none.
func (in Input) TraceParent() string { return in.Trace }

// TraceKey is the key of a value in the workflow context of a run: the trace context of the request
// that started the run, as a string. A run has it if its execution began with a run of another
// request.
type TraceKey struct{}

// ParkDelay returns how long the run waits before it is parked.
func (in Input) ParkDelay() time.Duration {
	if in.ParkAfter == 0 {
		return DefaultParkAfter
	}
	return in.ParkAfter
}

// DefaultParkAfter is how long a run waits in agent.run before it is parked. Parking costs one
// continue-as-new in each direction, so short waits stay where they are.
const DefaultParkAfter = 10 * time.Minute

// MaxQueue bounds Input.Queue, in bytes of its JSON.
const MaxQueue = 8 << 10

// ParkedInput starts thread.parked.v1.
type ParkedInput struct {
	// Run is the run that waits, with its progress unless it has ended.
	Run Input `json:"run"`
	// Interrupts are those that the thread waits for after the run's end; nil = the run is held or
	// paused.
	Interrupts *Interrupts `json:"interrupts,omitempty"`
}

// TraceParent returns the trace context of the request that started the run; "" = none.
func (p ParkedInput) TraceParent() string { return p.Run.Trace }

// Progress is how far a run has come when it continues as new.
type Progress struct {
	// Execution is the Temporal run ID of the execution that began the run. The log knows the run
	// by it.
	Execution string `json:"execution"`
	// Turn is the number of the current or next turn, from 1. Cancelled makes the run begin as
	// cancelled: the cancel arrived while the thread was parked, or before a suspended child
	// restarted.
	Turn      int  `json:"turn"`
	Paused    bool `json:"paused,omitempty"`
	Cancelled bool `json:"cancelled,omitempty"`
	LaneSequences
	Steering
	Budget
	// Subagents is how many have been started, Handoffs how often the thread was handed over, Repairs
	// how many invalid answers of the run's agent were sent back.
	Subagents int `json:"subagents,omitempty"`
	Handoffs  int `json:"handoffs,omitempty"`
	Repairs   int `json:"repairs,omitempty"`
	// Replies is how many reply signals a subagent or branch has received.
	Replies int `json:"replies,omitempty"`
	// Held are the interrupts of a turn that has not ended.
	Held *Interrupts `json:"held,omitempty"`
	// Position is set if the agent is a pipeline.
	Position *PipelinePosition `json:"position,omitempty"`
}

// Result is how a run ended, as its terminal record in the log says.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"` // of OutcomeError
	Seq     uint64  `json:"seq"`            // of the terminal record
}

// Redirect returns a queued run as it begins: with the agent that has the thread now, if the run's
// own agent has handed it over meanwhile. h may be nil.
func (h *HandoffTrail) Redirect(in Input) Input {
	switch {
	case h == nil:
	case slices.Contains(h.From, in.Agent):
		in.Agent, in.Revision, in.Limits = h.To.Agent, h.To.Revision, h.To.Limits
		in.Steps, in.Program, in.HasResult = false, "", false
		in.OnNewInput, in.OnMissingResult = h.To.OnNewInput, h.To.OnMissingResult
		in.HandedOver = h
	case in.Agent == h.To.Agent:
		in.HandedOver = h
	}
	return in
}
