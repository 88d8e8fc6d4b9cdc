package runs

import (
	"fmt"
	"slices"
	"time"
)

func (c Interrupt) isKept() bool { return c.Decision == nil || c.Decision.Kind != DecisionAbandon }

// AnnounceInterrupts asks to tell what a run waits for that goes on afterwards. The answer is the sequence of the main
// lane's last record.
type AnnounceInterrupts struct {
	Step
	Interrupts *Interrupts `json:"interrupts"`
	// Concurrent tells that it stands on a lane of its own, since others are under way: that lane's last record is the answer.
	Concurrent bool `json:"concurrent,omitempty"`
}

// DecidedHandoff is the hand-off of a turn whose calls are decided about.
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

// StepName tells the steps of one wait in a turn from those of the others.
func (w *Interrupts) StepName(step string) string {
	if w.Round == 0 {
		return step
	}
	return fmt.Sprintf("%s-%d", step, w.Round)
}

// Reserve is what decisions are going to take of what is carried on.
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

// Interrupts is what a thread waits for behind the end of an AG-UI run: the calls of its last message that
// were not made, or not to their end, each until there is a decision about it.
type Interrupts struct {
	MessageID string      `json:"messageId"`
	Calls     []Interrupt `json:"calls"`
	// Subagents are the agents that the calls hand work to.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Handoff is the call that hands the thread over, when the others are done.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Suspended are the subagents whose calls are among them.
	Suspended []SuspendedChild `json:"suspended,omitempty"`
	// RunID, Agent and Revision are those of the run that has ended with them, After is its terminal record.
	RunID    string `json:"run,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Revision string `json:"revision,omitempty"`
	After    uint64 `json:"after,omitempty"`
	// Step is the path of the step that has the agent's definition, if one does. Walk is where in its steps
	// the agent goes on.
	Step     string    `json:"step,omitempty"`
	Tree     uint64    `json:"tree,omitempty"`
	Position *Position `json:"position,omitempty"`
	// Opened is when the calls were asked for: what people decide about is reminded of, escalates and
	// expires some time after that.
	Opened time.Time `json:"opened,omitzero"`
	// Round is how often the run was held in the same turn before.
	Round int `json:"round,omitempty"`
	// Exceeded is the soft limit that people are asked about, with one call. Spent is what was used before, in a run
	// that has soft limits, and what people have allowed of its tenant's day.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	Spent    *Spent         `json:"spent,omitempty"`
	// Pending are what has happened to the calls and was not made known yet, Noticed is how many there were.
	Pending  []PendingNotification `json:"pending,omitempty"`
	Notified int                   `json:"notified,omitempty"`
}

// MaxInterrupts bounds the calls that a run may end with: they go on as one payload, with the run and those
// that wait behind it.
const (
	MaxInterrupts = 16
	maxDecision   = 240 // bytes
	maxVote       = 192
)

// Fits tells whether that payload has room for the calls, and for what may be said about each.
func (w *Interrupts) Fits(in Input) bool { return w.FitsWith(in, 0) }

// FitsWith is fits if so many bytes come along.
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

// Interrupt is a call that was not made, or whose tool asks something.
type Interrupt struct {
	Call
	Index int `json:"index"` // its place in the message
	// Child is the suspended subagent whose call it is, from 1; 0 = the run's own agent's.
	Child int `json:"child,omitempty"`
	// Opened is when it was asked for, if that was not with the others: while the run was under way. Expires is when nobody
	// can decide any more; zero = never.
	Opened  time.Time `json:"opened,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Votes are those for making the call that did not decide. They do not name the call, and no arguments
	// unless these are others than the model's.
	Votes []Decision `json:"votes,omitempty"`
	// Asked is the question that the tool has asked, in a call that had begun.
	Asked *Question `json:"asked,omitempty"`
	// Escalations is how many have come, Reminded how often people were reminded.
	Escalations int `json:"escalations,omitempty"`
	Reminded    int `json:"reminded,omitempty"`
	// Announced tells that it was made known that people are asked.
	Announced bool      `json:"announced,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
}

// Approval says that a person decides about a call before it is made, and by which rule.
type Approval struct {
	// Rule is its place in the agent's definition.
	Rule int `json:"rule"`
	// Args is the digest of the arguments that the model wrote: they are what is decided about.
	Args string `json:"args"`
	// Canonical is the digest of their canonical form, which equal arguments share; "" = it is that of Args.
	Canonical string `json:"canonical,omitempty"`
	// Policy is the digest of the rule: what is remembered of it ends when it changes.
	Policy string `json:"policy,omitempty"`
	// Quorum is how many people have to approve; 0 = 1.
	Quorum int `json:"quorum,omitempty"`
	// Remind is how often people are reminded; 0 = never.
	Remind time.Duration `json:"remind,omitempty"`
	// Escalate are the times, since the question was asked, at which more people may decide.
	Escalate []time.Duration `json:"escalate,omitempty"`
	// Expires is how long there is to decide; 0 = for ever.
	Expires  time.Duration `json:"expires,omitempty"`
	OnExpiry OnExpiry      `json:"onExpiry,omitempty"`
}

// OnExpiry says what becomes of a call that nobody decides about in time.
type OnExpiry string

// What may become of it.
const (
	OnExpiryReject OnExpiry = "reject" // the model is told that nobody approved; the default
	OnExpirySkip   OnExpiry = "skip"   // the model is told that the call was left out
	OnExpiryFail   OnExpiry = "fail"   // the run ends with CodeApprovalExpired
)

// AdoptTimes has the time of people count as the record of the run's end has told them. The record may be older than
// this attempt at the task: a worker that dies right behind it takes with it when that was.
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

// HasMissedDeadline tells whether nobody has answered before the end of a step.
func (w *Interrupts) HasMissedDeadline(l *ActiveStep) bool {
	return l != nil && !l.Deadline.IsZero() && slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Child == 0 && c.Decision != nil && c.Decision.Kind == DecisionExpire && !c.Expires.Before(l.Deadline)
	})
}

// AsksPeople tells whether people have to decide about a call, as opposed to the client's own tools.
func (w *Interrupts) AsksPeople() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.AsksPeople() })
}

// Outcome is how a run ends with these: calls of the client's are no question, and neither is what people have answered
// while branches ended with it.
func (w *Interrupts) Outcome() Outcome {
	if _, asks := w.Open(); asks {
		return OutcomeInterrupt
	}
	return OutcomeSuccess
}

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

// Since is when it was asked for, where the others were at some time.
func (c *Interrupt) Since(others time.Time) time.Time {
	if c.Opened.IsZero() {
		return others
	}
	return c.Opened
}

// Open are the calls that nothing was decided about.
func (w *Interrupts) Open(except ...Decision) (ids []string, asks bool) {
	for _, c := range w.Calls {
		if c.Decision == nil && !slices.ContainsFunc(except, c.answeredBy) {
			ids, asks = append(ids, c.ID), asks || c.AsksPeople()
		}
	}
	return ids, asks
}

// answeredBy tells whether a decision is one about this call: results are for the client's own, anything
// else for those that people decide about, and nobody approves of a tool's question.
func (c Interrupt) answeredBy(d Decision) bool {
	return d.CallID == c.ID && c.Client == (d.Kind == DecisionToolResult) && d.Question == c.number() && !(c.Asked != nil && d.Approves())
}

// CancelAnnounced ends what people were told of and is open: nobody is going to decide.
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

// CancelAll ends all that is open: who has asked goes on without answers.
func (w *Interrupts) CancelAll(now time.Time) {
	w.CancelAnnounced(now)
	w.Abandon()
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionCancel}
		}
	}
}

func (w *Interrupts) HasDecision() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision != nil })
}

func (w *Interrupts) IsResolved() bool {
	ids, _ := w.Open()
	return len(ids) == 0
}

// Abandon gives up the client's calls that nobody answered: it went on without.
func (w *Interrupts) Abandon() {
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil && c.Client {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionAbandon}
		}
	}
}

// FailsRun tells whether the run that goes on has to end, since nobody decided in time.
func (w *Interrupts) FailsRun() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Approval != nil && c.Decision.Kind == DecisionExpire && c.Approval.OnExpiry == OnExpiryFail
	})
}

// HasEdits tells whether calls are to be made with other arguments than the model's.
func (w *Interrupts) HasEdits() bool {
	return w != nil && slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision.Kind == DecisionEdit })
}

// NoteDelivered notes that an input has a result itself that was taken before: it stands in the conversation.
func (w *Interrupts) NoteDelivered(d Decision) {
	c := w.Find(d.CallID)
	if d.Kind == DecisionToolResult && c.Decision != nil && c.Decision.Kind == DecisionToolResult && c.Decision.Digest == d.Digest {
		c.Decision.Input = d.Input
	}
}

// FitsAnswered tells whether a payload of so many bytes has room for decisions about all that is open.
func (w *Interrupts) FitsAnswered(bytes, decisions int) bool {
	open, _ := w.Open()
	return bytes+(len(open)+decisions)*maxDecision+w.maxPending() <= MaxPayload
}
