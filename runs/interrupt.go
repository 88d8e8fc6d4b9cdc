package runs

import (
	"fmt"
	"slices"
	"time"
)

// isKept reports whether the run that continues works on the same matter: the client has not abandoned the call.
func (c Interrupt) isKept() bool { return c.Decision == nil || c.Decision.Kind != DecisionAbandon }

// AnnounceInterrupts is the input of ActivityAnnounce, which tells readers and the inbox what an open run waits for. The output is
// the sequence of the record.
type AnnounceInterrupts struct {
	Step
	Interrupts *Interrupts `json:"interrupts"`
	// Concurrent tells that the record is on the lane for interrupts of children, because others write to the main lane.
	Concurrent bool `json:"concurrent,omitempty"`
}

// DecidedHandoff returns the handoff of a turn whose interrupts are resolved, with the decision about it; nil = there is none.
func (w *Interrupts) DecidedHandoff() *Handoff {
	if w.Handoff == nil {
		return nil
	}
	h := *w.Handoff
	if at := slices.IndexFunc(w.Calls, func(c Interrupt) bool { return c.Child == 0 && h.Is(c.Index) }); at >= 0 {
		h.Waited = &w.Calls[at]
	}
	return &h
}

// StepName makes a step's ID unique among the rounds in which a turn is held.
func (w *Interrupts) StepName(step string) string {
	if w.Round == 0 {
		return step
	}
	return fmt.Sprintf("%s-%d", step, w.Round)
}

// Reserve returns how many bytes decisions about the open interrupts may take, and notifications of them; 0 if w is nil.
func (w *Interrupts) Reserve() int {
	if w == nil {
		return 0
	}
	room := w.maxPending()
	for _, c := range w.Calls {
		if c.Decision == nil {
			room += maxDecision + c.Approval.maxVotes()*maxVote
		}
	}
	return room
}

// Interrupts are what a run waits for from outside (AG-UI): tool calls of one message that people or the client decide about, and
// questions of tools. They are resolved when each has a [Decision]. A thread waits for them after the end of its AG-UI run;
// a held run waits for them in its turn; a child passes them to its thread.
//
// Interrupts travel in payloads from execution to execution, so their number and size are bounded ([Interrupts.Fits]).
type Interrupts struct {
	MessageID string      `json:"messageId"`
	Calls     []Interrupt `json:"calls"`
	// Subagents are the agents to which calls hand work.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Handoff is the call that hands the thread over after all others; nil = none does.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Suspended are the children that have ended with some of the calls.
	Suspended []SuspendedChild `json:"suspended,omitempty"`
	// RunID, Agent and Revision are those of the run that has them. After is the record that announced them: of a run that
	// ended with them its terminal record; 0 = they are not announced.
	RunID    string `json:"run,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Revision string `json:"revision,omitempty"`
	After    uint64 `json:"after,omitempty"`
	// Step is the path of the pipeline step that defines the agent inline, Tree the record with the steps of a program.
	// Position is where the pipeline continues.
	Step     string    `json:"step,omitempty"`
	Tree     uint64    `json:"tree,omitempty"`
	Position *Position `json:"position,omitempty"`
	// Opened is when they were announced. Reminders, escalations and expiry count from then.
	Opened time.Time `json:"opened,omitzero"`
	// Round counts how often the run was held in the same turn before.
	Round int `json:"round,omitempty"`
	// Exceeded is the soft limit that the only call is about; nil = none. Spent is what the next run takes over.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	Spent    *Spent         `json:"spent,omitempty"`
	// Pending are the notifications that have not been sent, oldest first. Notified is how many there were.
	Pending  []PendingNotification `json:"pending,omitempty"`
	Notified int                   `json:"notified,omitempty"`
}

// MaxInterrupts bounds the calls that a run may wait for. maxDecision and maxVote bound the JSON of a decision and of a vote, in
// bytes.
const (
	MaxInterrupts = 16
	maxDecision   = 240
	maxVote       = 192
)

// Fits reports whether a payload has room for the interrupts with their run, and for all decisions about them.
func (w *Interrupts) Fits(in Input) bool { return w.FitsWith(in, 0) }

// FitsWith is Fits if so many more bytes travel along.
func (w *Interrupts) FitsWith(in Input, more int) bool {
	if len(w.Calls) > MaxInterrupts {
		return false
	}
	in.Queue, in.Resume = nil, nil
	body, err := Encode(ParkedInput{Run: in, Interrupts: w}) //workflowcheck:ignore the same value gives the same text
	room := w.maxPending() + MaxQueue + more
	for _, c := range w.Calls {
		room += maxDecision + c.Approval.maxVotes()*maxVote
	}
	return err == nil && len(body)+room <= MaxPayload
}

// Interrupt is a tool call that waits for a decision, or whose tool asks people a question.
type Interrupt struct {
	Call
	Index int `json:"index"` // in the message
	// Child is the suspended child that made the call, as an index into Suspended from 1; 0 = the run's own agent did.
	Child int `json:"child,omitempty"`
	// Opened is when it was announced, if that was before the others; see [Interrupt.Since]. Expires is when it expires; zero =
	// never.
	Opened  time.Time `json:"opened,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Votes are the approvals that have not completed the quorum. CallID is empty in them, and Args where they are for the
	// model's arguments.
	Votes []Decision `json:"votes,omitempty"`
	// Asked is the question that the tool asked; nil = the call has not been made.
	Asked *Question `json:"asked,omitempty"`
	// Escalations is how many escalations are due, Reminded how many reminders.
	Escalations int `json:"escalations,omitempty"`
	Reminded    int `json:"reminded,omitempty"`
	// Announced tells that people were notified of it.
	Announced bool      `json:"announced,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
}

// Approval is the approval rule under which people decide about a call, as far as the workflow needs it.
type Approval struct {
	// Rule is the index of the rule in the agent's definition.
	Rule int `json:"rule"`
	// Args is the digest of the model's arguments.
	Args string `json:"args"`
	// Canonical is the digest of their canonical form, which equal arguments share; "" = Args.
	Canonical string `json:"canonical,omitempty"`
	// Policy is the digest of the rule. A remembered approval ends when it changes.
	Policy string `json:"policy,omitempty"`
	// Quorum is how many people must approve; 0 means 1.
	Quorum int `json:"quorum,omitempty"`
	// Remind is how often people are reminded; 0 = never.
	Remind time.Duration `json:"remind,omitempty"`
	// Escalate are the times since the opening at which further people may decide.
	Escalate []time.Duration `json:"escalate,omitempty"`
	// Expires is how long people may decide; 0 = for ever.
	Expires  time.Duration `json:"expires,omitempty"`
	OnExpiry OnExpiry      `json:"onExpiry,omitempty"`
}

// OnExpiry says what happens to a call that nobody decides about in time.
type OnExpiry string

// The values of OnExpiry.
const (
	OnExpiryReject OnExpiry = "reject" // the model is told that nobody approved; the default
	OnExpirySkip   OnExpiry = "skip"   // the model is told that the call was left out
	OnExpiryFail   OnExpiry = "fail"   // the run ends with CodeApprovalExpired
)

// AdoptTimes takes over when the interrupts opened and expire from the terminal record. The record may be older than this attempt
// at the workflow task, if a worker died after writing it.
func (w *Interrupts) AdoptTimes(done Finished) {
	if w == nil {
		return
	}
	for i := range w.Calls {
		if at, ok := done.Expires[w.Calls[i].ID]; ok {
			w.Calls[i].Expires = at
		}
	}
	if done.AskedAt.IsZero() {
		return
	}
	w.Opened = done.AskedAt
	for i := range w.Pending {
		if n := &w.Pending[i]; n.Event == EventOpened {
			n.At = w.Opened
		}
	}
}

// HasMissedDeadline reports whether an interrupt expired with the deadline of its step.
func (w *Interrupts) HasMissedDeadline(l *ActiveStep) bool {
	return l != nil && !l.Deadline.IsZero() && slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Child == 0 && c.Decision != nil && c.Decision.Kind == DecisionExpire && !c.Expires.Before(l.Deadline)
	})
}

// AsksPeople reports whether people decide about one of the calls, as opposed to the client's own tools.
func (w *Interrupts) AsksPeople() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.AsksPeople() })
}

// Outcome returns how a run ends with these: OutcomeInterrupt if people are asked, else OutcomeSuccess with pending tool calls.
func (w *Interrupts) Outcome() Outcome {
	if _, asks := w.Open(); asks {
		return OutcomeInterrupt
	}
	return OutcomeSuccess
}

// Find returns the interrupt of a call; nil = there is none, or w is nil.
func (w *Interrupts) Find(callID string) *Interrupt {
	if w == nil {
		return nil
	}
	for i := range w.Calls {
		if w.Calls[i].ID == callID {
			return &w.Calls[i]
		}
	}
	return nil
}

// Since returns when the interrupt opened. others is when the interrupts around it did.
func (c *Interrupt) Since(others time.Time) time.Time {
	if c.Opened.IsZero() {
		return others
	}
	return c.Opened
}

// Open returns the IDs of the calls without a decision, as if those in except were taken, and whether people are asked about any.
func (w *Interrupts) Open(except ...Decision) (ids []string, asks bool) {
	for _, c := range w.Calls {
		if c.Decision == nil && !slices.ContainsFunc(except, c.answeredBy) {
			ids, asks = append(ids, c.ID), asks || c.AsksPeople()
		}
	}
	return ids, asks
}

// answeredBy reports whether a decision fits the call: results are for the client's own tools, other kinds for calls that people
// decide about, and a tool's question is answered, not approved.
func (c Interrupt) answeredBy(d Decision) bool {
	return d.CallID == c.ID && c.Client == (d.Kind == DecisionToolResult) && d.Question == c.number() && !(c.Asked != nil && d.Approves())
}

// CancelAnnounced cancels the open interrupts that people were notified of.
func (w *Interrupts) CancelAnnounced(now time.Time) {
	var left []*Interrupt
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Announced && c.Decision == nil {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionCancel}
			left = append(left, c)
		}
	}
	w.notify(EventDecided, now, left...)
}

// CancelAll cancels all open interrupts, and abandons the client's tool calls.
func (w *Interrupts) CancelAll(now time.Time) {
	w.CancelAnnounced(now)
	w.Abandon()
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionCancel}
		}
	}
}

// HasDecision reports whether a call is decided.
func (w *Interrupts) HasDecision() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision != nil })
}

// IsResolved reports whether all calls are decided.
func (w *Interrupts) IsResolved() bool {
	ids, _ := w.Open()
	return len(ids) == 0
}

// Abandon decides the client's open tool calls: the client went on without results.
func (w *Interrupts) Abandon() {
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil && c.Client {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionAbandon}
		}
	}
}

// FailsRun reports whether an interrupt expired whose rule then fails the run.
func (w *Interrupts) FailsRun() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Approval != nil && c.Decision.Kind == DecisionExpire && c.Approval.OnExpiry == OnExpiryFail
	})
}

// HasEdits reports whether calls are made with other arguments than the model's.
func (w *Interrupts) HasEdits() bool {
	return w != nil && slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision.Kind == DecisionEdit })
}

// NoteDelivered notes that an input contains a result that was taken before: it is in the conversation already.
func (w *Interrupts) NoteDelivered(d Decision) {
	c := w.Find(d.CallID)
	if d.Kind == DecisionToolResult && c.Decision != nil && c.Decision.Kind == DecisionToolResult && c.Decision.Digest == d.Digest {
		c.Decision.Input = d.Input
	}
}

// FitsAnswered reports whether a payload of so many bytes has room for decisions about all open interrupts.
func (w *Interrupts) FitsAnswered(bytes, decisions int) bool {
	open, _ := w.Open()
	return bytes+(len(open)+decisions)*maxDecision+w.maxPending() <= MaxPayload
}
