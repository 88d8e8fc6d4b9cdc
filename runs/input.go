package runs

import "time"

func (in Input) ParkPatience() time.Duration {
	if in.ParkAfter == 0 {
		return DefaultParkAfter
	}
	return in.ParkAfter
}

// Input starts TypeRun.
type Input struct {
	Run      Ref    `json:"run"`
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// Input is the sequence of the proposed input in the log, Digest that of its decoded content.
	Input  uint64 `json:"input"`
	Digest string `json:"digest"`
	Limits Limits `json:"limits"`
	// Token is the run's name in search attributes. It is set in a run that waits in a Queue, whose
	// execution does not begin with attributes of its own.
	Token string `json:"token,omitempty"`

	// ParkAfter is how long the run waits for a person before it is parked. 0 = DefaultParkAfter.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`

	// Trace is the W3C trace context of the request that asked for the run, as the header traceparent has it. An execution
	// that continues another one takes it for its own: the run before may be another one.
	Trace string `json:"trace,omitempty"`

	// Fire is the workflow that is told when the run is over, with all that goes on for it: that of the time
	// of a schedule at which it began.
	Fire string `json:"fire,omitempty"`

	// Steps tells that the agent consists of steps, Program which program it is; "" = none.
	Steps   bool   `json:"steps,omitempty"`
	Program string `json:"program,omitempty"`
	// Hold keeps the run open while calls of its turns wait.
	Hold bool `json:"hold,omitempty"`
	// OnNewInput is what becomes of an input that leaves questions open, behind the run's end; none is
	// OnOpenReject. OnMissing is the same for results of the client's tools; none is that of runs which
	// do not wait for such results.
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissing,omitempty"`

	// HandedOver is set in a run whose thread was handed over to its agent while it was under way or waited.
	HandedOver *HandoverTrail `json:"handed,omitempty"`
	// Resume is set in a run that goes on with calls of the one before it: all are decided.
	Resume *Interrupts `json:"resume,omitempty"`
	// Continues is the run before, in a run that nobody asked for: it has no input.
	Continues string `json:"continues,omitempty"`
	// Cancelled is set in a run that goes on for one that was cancelled on its way to end with questions.
	Cancelled bool `json:"cancelled,omitempty"`
	// AnswersOnly is set in a run that only answers what was decided without it: there is nothing to do.
	AnswersOnly bool `json:"late,omitempty"`
	// Progress is set where an execution goes on with the run of the one before it.
	Progress *Progress `json:"progress,omitempty"`
	// Queue are the runs that wait for their turn on the thread, each without a queue of its own.
	Queue []Input `json:"queue,omitempty"`
}

// TraceParent returns the trace context of the request that asked for the run; "" = none.
func (in Input) TraceParent() string { return in.Trace }

// DefaultParkAfter is how long a run waits in the workflow that runs it. Longer waits are those of the
// night and the weekend: they move to TypeParked, which costs a continuation in each direction.
const DefaultParkAfter = 10 * time.Minute

// ParkedInput starts TypeParked: a thread whose run waits for a person.
type ParkedInput struct {
	Run Input `json:"run"` // with its progress, unless it has ended
	// Interrupts is what the thread waits for behind the end of the run.
	Interrupts *Interrupts `json:"waits,omitempty"`
}

// TraceParent returns the trace context of the request that asked for the run; "" = none.
func (p ParkedInput) TraceParent() string { return p.Run.Trace }

// Progress is how far a run has come when it continues as new.
type Progress struct {
	// Execution is the one that began the run: the log knows the run as its.
	Execution string `json:"execution"`
	Turn      int    `json:"turn"` // the next
	Paused    bool   `json:"paused,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"` // it was, while it was parked
	Positions
	Steering
	Budget
	Subagents int `json:"subagents,omitempty"` // that have worked
	Handoffs  int `json:"handoffs,omitempty"`  // of the run
	Replies   int `json:"replies,omitempty"`   // that have come to a subagent
	// Held is what the run waits for in a turn that has not ended.
	Held     *Interrupts `json:"held,omitempty"`
	Position *Position   `json:"walk,omitempty"`
}

// Result is how a run ended, as its terminal record says.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`
	Seq     uint64  `json:"seq"`
}

// Outcome of a run or a step.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeInterrupt Outcome = "interrupt"
	// OutcomeFenced is that of an execution whose run belongs to another one: it has no effect.
	OutcomeFenced Outcome = "fenced"
)

// MaxQueue bounds the runs that wait for a thread, in bytes of the payload that carries them on.
const MaxQueue = 8 << 10
