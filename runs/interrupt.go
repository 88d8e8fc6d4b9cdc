package runs

import (
	"fmt"
	"time"
)

// isKept reports whether the run that continues works on the same matter: the client has not
// abandoned the call.
func (i Interrupt) isKept() bool { return i.Decision == nil || i.Decision.Kind != DecisionAbandon }

// MaxInterrupts bounds the calls that a run may wait for. maxDecision and maxVote bound the JSON of
// a decision and of a vote, in bytes.
const (
	MaxInterrupts = 16
	maxDecision   = 240
	maxVote       = 192
)

// Interrupt is a tool call that waits for a decision, or whose tool asks people a question.
type Interrupt struct {
	Call
	Index int `json:"index"` // in the message
	// Child is the suspended child that made the call, as an index into Suspended from 1; 0 = the
	// run's own agent did.
	Child int `json:"child,omitempty"`
	// OpenedAt is when it was announced, if that was before the others; see [Interrupt.Since].
	// Expires is when it expires; zero = never.
	OpenedAt time.Time `json:"opened,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	// Votes are the approvals, and the answers to a question, that have not completed the quorum.
	// CallID is empty in them, and ArgsDigest where they are for the model's arguments.
	Votes []Decision `json:"votes,omitempty"`
	// Question is the question that the tool asked; nil = the call has not been made.
	Question *Question `json:"question,omitempty"`
	// Escalations is how many escalations are due, Reminded how many reminders.
	Escalations int `json:"escalations,omitempty"`
	Reminded    int `json:"reminded,omitempty"`
	// Announced tells that approvers were notified of it.
	Announced bool      `json:"announced,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
}

// Since returns when the interrupt opened. others is when the interrupts around it did.
func (i *Interrupt) Since(others time.Time) time.Time {
	if i.OpenedAt.IsZero() {
		return others
	}
	return i.OpenedAt
}

// answeredBy reports whether a decision fits the call: results are for the client's own tools,
// other kinds for calls that approvers decide about, and a tool's question is answered, not
// approved.
func (i Interrupt) answeredBy(d Decision) bool {
	return d.CallID == i.ID && i.Client == (d.Kind == DecisionToolResult) && d.Question == i.number() && !(i.Question != nil && d.Approves())
}

// AsksPeople reports whether people decide, as opposed to the client's own tools.
func (i *Interrupt) AsksPeople() bool { return i.Approval != nil || i.Question != nil }

// number returns the number of the question that is open, from 1; 0 = the interrupt is about making
// the call.
func (i *Interrupt) number() int {
	if i.Question == nil {
		return 0
	}
	return i.Question.Number
}

// Name names the interrupt; the name is unique in the run.
func (i *Interrupt) Name() string {
	if i.Question == nil {
		return i.ID
	}
	return fmt.Sprintf("%s/%d", i.ID, i.Question.Number)
}
