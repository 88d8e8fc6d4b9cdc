package runs

import (
	"fmt"
	"slices"
	"time"
)

// AnnounceInterrupts is the input of ActivityAnnounce, which tells readers and the inbox what an
// open run waits for. The output is the sequence of the record.
type AnnounceInterrupts struct {
	Step
	Interrupts *Interrupts `json:"interrupts"`
	// Concurrent tells that the record is on the lane for interrupts of children, because others
	// write to the main lane.
	Concurrent bool `json:"concurrent,omitempty"`
}

// DecidedHandoff returns the handoff of a turn whose interrupts are resolved, with the decision
// about it; nil = there is none.
func (s *Interrupts) DecidedHandoff() *Handoff {
	if s.Handoff == nil {
		return nil
	}
	h := *s.Handoff
	if at := slices.IndexFunc(s.Items, func(item Interrupt) bool { return item.Child == 0 && h.Is(item.Index) }); at >= 0 {
		h.Interrupt = &s.Items[at]
	}
	return &h
}

// StepName makes a step's ID unique among the rounds in which a turn is held.
func (s *Interrupts) StepName(step string) string {
	if s.Round == 0 {
		return step
	}
	return fmt.Sprintf("%s-%d", step, s.Round)
}

// Interrupts are what a run waits for from outside (AG-UI): tool calls of one message that people
// or the client decide about, and questions of tools. They are resolved when each has a [Decision].
// A thread waits for them after the end of its AG-UI run; a held run waits for them in its turn; a
// child passes them to its thread.
//
// Interrupts travel in payloads from execution to execution, so their number and size are bounded
// ([Interrupts.Fits]).
type Interrupts struct {
	MessageID string      `json:"messageId"`
	Items     []Interrupt `json:"items"`
	// Subagents are the agents to which calls hand work.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Handoff is the call that hands the thread over after all others; nil = none does.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Suspended are the children that have ended with some of the calls.
	Suspended []SuspendedChild `json:"suspended,omitempty"`
	// RunID, Agent and Revision are those of the run that has them. AnnouncedBy is the record that
	// announced them: of a run that ended with them its terminal record; 0 = they are not
	// announced.
	RunID       string `json:"run,omitempty"`
	Agent       string `json:"agent,omitempty"`
	Revision    string `json:"revision,omitempty"`
	AnnouncedBy uint64 `json:"announcedBy,omitempty"`
	// Step is the path of the pipeline step that defines the agent inline, Tree the record with the
	// steps of a program. Position is where the pipeline continues.
	Step     string            `json:"step,omitempty"`
	Tree     uint64            `json:"tree,omitempty"`
	Position *PipelinePosition `json:"position,omitempty"`
	// OpenedAt is when they were announced. Reminders, escalations and expiry count from then.
	OpenedAt time.Time `json:"opened,omitzero"`
	// Round counts how often the run was held in the same turn before.
	Round int `json:"round,omitempty"`
	// Exceeded is the soft limit that the only call is about; nil = none. Spent is what the next
	// run takes over.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	Spent    *PriorUsage    `json:"spent,omitempty"`
	// Pending are the notifications that have not been sent, oldest first. Notified is how many
	// there were.
	Pending  []PendingNotification `json:"pending,omitempty"`
	Notified int                   `json:"notified,omitempty"`
}

// HasMissedDeadline reports whether an interrupt expired with the deadline of its step.
func (s *Interrupts) HasMissedDeadline(active *ActiveStep) bool {
	return active != nil && !active.Deadline.IsZero() && slices.ContainsFunc(s.Items, func(item Interrupt) bool {
		return item.Child == 0 && item.Decision != nil && item.Decision.Kind == DecisionExpire && !item.Expires.Before(active.Deadline)
	})
}

// AsksPeople reports whether people decide about one of the calls, as opposed to the client's own
// tools.
func (s *Interrupts) AsksPeople() bool {
	return slices.ContainsFunc(s.Items, func(item Interrupt) bool { return item.AsksPeople() })
}

// Outcome returns how a run ends with these: OutcomeInterrupt if people are asked, else
// OutcomeSuccess with pending tool calls.
func (s *Interrupts) Outcome() Outcome {
	if _, asksPeople := s.Open(); asksPeople {
		return OutcomeInterrupt
	}
	return OutcomeSuccess
}

// Find returns the interrupt of a call; nil = there is none, or s is nil.
func (s *Interrupts) Find(callID string) *Interrupt {
	if s == nil {
		return nil
	}
	for i := range s.Items {
		if s.Items[i].ID == callID {
			return &s.Items[i]
		}
	}
	return nil
}

// Open returns the IDs of the calls without a decision, as if those in except were taken, and
// whether people are asked about any: not if all are calls of the client's tools.
func (s *Interrupts) Open(except ...Decision) (ids []string, asksPeople bool) {
	for _, item := range s.Items {
		if item.Decision == nil && !slices.ContainsFunc(except, item.answeredBy) {
			ids, asksPeople = append(ids, item.ID), asksPeople || item.AsksPeople()
		}
	}
	return ids, asksPeople
}

// CancelAnnounced cancels the open interrupts that people were notified of.
func (s *Interrupts) CancelAnnounced(now time.Time) {
	var left []*Interrupt
	for i := range s.Items {
		if item := &s.Items[i]; item.Announced && item.Decision == nil {
			item.Decision = &Decision{CallID: item.ID, Kind: DecisionCancel}
			left = append(left, item)
		}
	}
	s.notify(EventDecided, now, left...)
}

// CancelAll cancels all open interrupts, and abandons the client's tool calls.
func (s *Interrupts) CancelAll(now time.Time) {
	s.CancelAnnounced(now)
	s.Abandon()
	for i := range s.Items {
		if item := &s.Items[i]; item.Decision == nil {
			item.Decision = &Decision{CallID: item.ID, Kind: DecisionCancel}
		}
	}
}

// HasDecision reports whether a call is decided.
func (s *Interrupts) HasDecision() bool {
	return slices.ContainsFunc(s.Items, func(item Interrupt) bool { return item.Decision != nil })
}

// IsResolved reports whether all calls are decided.
func (s *Interrupts) IsResolved() bool {
	ids, _ := s.Open()
	return len(ids) == 0
}

// Abandon decides the client's open tool calls: the client went on without results.
func (s *Interrupts) Abandon() {
	for i := range s.Items {
		if item := &s.Items[i]; item.Decision == nil && item.Client {
			item.Decision = &Decision{CallID: item.ID, Kind: DecisionAbandon}
		}
	}
}

// FailsRun reports whether an interrupt expired whose rule then fails the run. The interrupts must
// be resolved (see [Interrupts.IsResolved]).
func (s *Interrupts) FailsRun() bool {
	return slices.ContainsFunc(s.Items, func(item Interrupt) bool {
		return item.Approval != nil && item.Decision.Kind == DecisionExpire && item.Approval.OnExpiry == OnExpiryFail
	})
}

// HasEdits reports whether calls are made with other arguments than the model's. The interrupts
// must be resolved (see [Interrupts.IsResolved]).
func (s *Interrupts) HasEdits() bool {
	return s != nil && slices.ContainsFunc(s.Items, func(item Interrupt) bool { return item.Decision.Kind == DecisionEdit })
}

// NoteDelivered notes that an input contains a result that was taken before: it is in the
// conversation already.
func (s *Interrupts) NoteDelivered(d Decision) {
	i := s.Find(d.CallID)
	if d.Kind == DecisionToolResult && i.Decision != nil && i.Decision.Kind == DecisionToolResult && i.Decision.Digest == d.Digest {
		i.Decision.Proposal = d.Proposal
	}
}

// OpenNames returns the names of the open interrupts.
func (s *Interrupts) OpenNames() []string {
	var names []string
	for i := range s.Items {
		if item := &s.Items[i]; item.Decision == nil {
			names = append(names, item.Name())
		}
	}
	return names
}

// Add adds questions of tools, in the order of their calls.
func (s *Interrupts) Add(raised []Interrupt) {
	slices.SortFunc(raised, func(a, b Interrupt) int { return a.Index - b.Index })
	s.Items = append(s.Items, raised...)
}

// AdoptTimes takes over from the terminal record when the interrupts opened and when they expire; s
// may be nil. The record may be older than this attempt at the workflow task, if a worker died
// after writing it.
func (s *Interrupts) AdoptTimes(opened time.Time, expires map[string]time.Time) {
	if s == nil {
		return
	}
	for i := range s.Items {
		if at, ok := expires[s.Items[i].ID]; ok {
			s.Items[i].Expires = at
		}
	}
	if opened.IsZero() {
		return
	}
	s.OpenedAt = opened
	for i := range s.Pending {
		if n := &s.Pending[i]; n.Event == EventOpened {
			n.At = s.OpenedAt
		}
	}
}
