package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// Interrupts is what a thread waits for behind the end of an AG-UI run: the calls of its last message that
// were not made, or not to their end, each until there is a decision about it.
type Interrupts struct {
	MessageID string      `json:"messageId"`
	Calls     []Interrupt `json:"calls"`
	// Subagents are the agents that the calls hand work to.
	Subagents []AgentRef `json:"delegates,omitempty"`
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
	Position *Position `json:"walk,omitempty"`
	// Opened is when the calls were asked for: what people decide about is reminded of, escalates and
	// expires some time after that.
	Opened time.Time `json:"opened,omitzero"`
	// Round is how often the run was held in the same turn before.
	Round int `json:"round,omitempty"`
	// Exceeded is the soft limit that people are asked about, with one call. Spent is what was used before, in a run
	// that has soft limits, and what people have allowed of its tenant's day.
	Exceeded *ExceededLimit `json:"excess,omitempty"`
	Spent    *Spent         `json:"spent,omitempty"`
	// Pending are what has happened to the calls and was not made known yet, Noticed is how many there were.
	Pending  []PendingNotification `json:"news,omitempty"`
	Notified int                   `json:"noticed,omitempty"`
}

// MaxInterrupts bounds the calls that a run may end with: they go on as one payload, with the run and those
// that wait behind it.
const (
	MaxInterrupts = 16
	maxDecision   = 240 // bytes
	maxVote       = 192
)

// fits tells whether that payload has room for the calls, and for what may be said about each.
func (w *Interrupts) fits(in RunInput) bool { return w.fitsWith(in, 0) }

// fitsWith is fits if so many bytes come along.
func (w *Interrupts) fitsWith(in RunInput, more int) bool {
	if len(w.Calls) > MaxInterrupts {
		return false
	}
	in.Queue, in.Resume = nil, nil
	body, err := encode(ParkedInput{Run: in, Interrupts: w}) //workflowcheck:ignore the same value gives the same text
	room := w.maxNews() + maxQueue + more
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
	Child int `json:"within,omitempty"`
	// Opened is when it was asked for, if that was not with the others: while the run was under way. Expires is when nobody
	// can decide any more; zero = never.
	Opened  time.Time `json:"opened,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Votes are those for making the call that did not decide. They do not name the call, and no arguments
	// unless these are others than the model's.
	Votes []Decision `json:"votes,omitempty"`
	// Asked is the question that the tool has asked, in a call that had begun.
	Asked *Question `json:"raised,omitempty"`
	// Escalations is how many have come, Reminded how often people were reminded.
	Escalations int `json:"escalations,omitempty"`
	Reminded    int `json:"reminded,omitempty"`
	// Announced tells that it was made known that people are asked.
	Announced bool      `json:"told,omitempty"`
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

// DecisionKind is what was decided about a call.
type DecisionKind string

// The verdicts.
const (
	DecisionApprove    DecisionKind = "approve" // make it
	DecisionEdit       DecisionKind = "edit"    // make it with other arguments
	DecisionReject     DecisionKind = "reject"  // tell the model that it may not be made, and why
	DecisionAnswer     DecisionKind = "answer"  // give the model this result instead, or the tool that asks this answer
	DecisionCancel     DecisionKind = "cancel"  // nobody is going to decide
	DecisionExpire     DecisionKind = "expire"  // nobody decided in time
	DecisionToolResult DecisionKind = "result"  // the client's result of its own call
	DecisionAbandon    DecisionKind = "abandon" // the client went on without it
)

// Decision is what somebody decided about a call. What they said is in the log.
type Decision struct {
	CallID string       `json:"call"`
	Kind   DecisionKind `json:"verdict"`
	// Question is which question of the call's tool this is about, from 1; 0 = whether the call may be made.
	Question int `json:"question,omitempty"`
	// Digest is that of the decision, with all that was said: the same again is the same.
	Digest string `json:"digest,omitempty"`
	// Input is the proposal that has what was said, 0 if nothing was.
	Input uint64 `json:"input,omitempty"`
	// Args is the digest of the arguments that the call is to be made with.
	Args string `json:"args,omitempty"`
	// Allowed is how far a run may go that has passed a soft limit, in its units, if an edit says so.
	Allowed int64 `json:"allowed,omitempty"`
	// By is a digest of who decided: nobody counts twice.
	By string `json:"by,omitempty"`
	// Remember says which further calls of the tool, to which the same rule applies, are made without asking. Only of
	// VerdictApprove.
	Remember RememberScope `json:"remember,omitempty"`
}

// Decide is what UpdateDecide carries: decisions about calls that a thread waits for. Each is judged
// for itself.
type Decide struct {
	Decisions []Decision `json:"decisions"`
}

// Decided answers a Decide, decision by decision.
type Decided struct {
	Results []DecisionResult `json:"results"`
}

// DecisionResult tells what became of a decision: taken if there is neither an error nor a recorded one.
type DecisionResult struct {
	// Error is ErrorUnknownCall, ErrorDecided, ErrorExpired or ErrorOtherEdit.
	Error string `json:"error,omitempty"`
	// Recorded is the decision that stands, if there was one before; the same one if there is no error.
	Recorded *Decision `json:"recorded,omitempty"`
	// Missing is how many more people have to vote for the same arguments. Proposals counts the votes for each proposal.
	Missing   int     `json:"missing,omitempty"`
	Proposals []Tally `json:"proposals,omitempty"`
	// Settled tells that nothing is open any more of what was asked together with the call: the thread goes on.
	Settled bool `json:"settled,omitempty"`
}

// Codes of a DecisionResult.
const (
	ErrorUnknownCall = "unknown_call"
	ErrorDecided     = "decided"
	ErrorExpired     = "expired"
	// ErrorOtherEdit: people have approved of other arguments, which are not the model's either.
	ErrorOtherEdit = "other_edit"
)

// DigestArgs is what arguments are compared by, between what was decided about and what is executed.
func DigestArgs(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return hex.EncodeToString(sum[:16])
}

func (c Call) waits() bool { return c.Client || c.Approval != nil }

// waitsOf are the calls of an answer that are not made before the run ends, and since when.
func (r *run) waitsOf(ctx workflow.Context, a ModelAnswer) *Interrupts {
	by, now := r.activeAgent(), workflow.Now(ctx)
	w := &Interrupts{MessageID: a.MessageID, Subagents: a.Subagents, Handoff: a.Handoff, RunID: r.in.Run.ID, Agent: by.Agent, Revision: by.Revision, Position: r.pipeline.position, Opened: now}
	if l := r.activeStep(); l != nil && l.Place.Inline {
		w.Step, w.Tree = l.Place.Path, l.Place.Tree
	}
	w.Spent = r.budget.carried(r.in.Limits, now)
	for i, c := range a.Calls {
		if !c.waits() {
			continue
		}
		waiting := Interrupt{Call: c, Index: i}
		if c.Approval != nil {
			waiting.Expires = r.expiry(now, c.Approval.Expires)
		}
		w.Calls = append(w.Calls, waiting)
	}
	return w
}

// expiry is when nobody can answer any more what is asked now: some time later, if that is not 0, and not behind the
// end of the step that asks.
func (r *run) expiry(now time.Time, after time.Duration) (at time.Time) {
	if after > 0 {
		at = now.Add(after)
	}
	if l := r.activeStep(); l != nil {
		at = earlier(at, l.Deadline)
	}
	return at
}

// askedBefore has the time of people count as the record of the run's end has told them. The record may be older than
// this attempt at the task: a worker that dies right behind it takes with it when that was.
func (w *Interrupts) askedBefore(done Finished) {
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

// hasMissedDeadline tells whether nobody has answered before the end of a step.
func (w *Interrupts) hasMissedDeadline(l *ActiveStep) bool {
	return l != nil && !l.Deadline.IsZero() && slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Child == 0 && c.Decision != nil && c.Decision.Kind == DecisionExpire && !c.Expires.Before(l.Deadline)
	})
}

// asksPeople tells whether people have to decide about a call, as opposed to the client's own tools.
func (w *Interrupts) asksPeople() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.asksPeople() })
}

// outcome is how a run ends with these: calls of the client's are no question, and neither is what people have answered
// while branches ended with it.
func (w *Interrupts) outcome() Outcome {
	if _, asks := w.open(); asks {
		return OutcomeInterrupt
	}
	return OutcomeSuccess
}

func (w *Interrupts) find(callID string) *Interrupt {
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

// open are the calls that nothing was decided about.
func (w *Interrupts) open(except ...Decision) (ids []string, asks bool) {
	for _, c := range w.Calls {
		if c.Decision == nil && !slices.ContainsFunc(except, c.answeredBy) {
			ids, asks = append(ids, c.ID), asks || c.asksPeople()
		}
	}
	return ids, asks
}

// answeredBy tells whether a decision is one about this call: results are for the client's own, anything
// else for those that people decide about, and nobody approves of a tool's question.
func (c Interrupt) answeredBy(d Decision) bool {
	return d.CallID == c.ID && c.Client == (d.Kind == DecisionToolResult) && d.Question == c.number() && !(c.Asked != nil && d.approves())
}

// cancelTold ends what people were told of and is open: nobody is going to decide.
func (w *Interrupts) cancelTold(now time.Time) {
	var left []*Interrupt
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Announced && c.Decision == nil {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionCancel}
			left = append(left, c)
		}
	}
	w.addNews(EventDecided, now, left...)
}

// cancelAll ends all that is open: who has asked goes on without answers.
func (w *Interrupts) cancelAll(now time.Time) {
	w.cancelTold(now)
	w.abandon()
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionCancel}
		}
	}
}

func (w *Interrupts) hasDecision() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision != nil })
}

func (w *Interrupts) isResolved() bool {
	ids, _ := w.open()
	return len(ids) == 0
}

// abandon gives up the client's calls that nobody answered: it went on without.
func (w *Interrupts) abandon() {
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil && c.Client {
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionAbandon}
		}
	}
}

// failsRun tells whether the run that goes on has to end, since nobody decided in time.
func (w *Interrupts) failsRun() bool {
	return slices.ContainsFunc(w.Calls, func(c Interrupt) bool {
		return c.Approval != nil && c.Decision.Kind == DecisionExpire && c.Approval.OnExpiry == OnExpiryFail
	})
}

// edits tells whether calls are to be made with other arguments than the model's.
func (w *Interrupts) edits() bool {
	return w != nil && slices.ContainsFunc(w.Calls, func(c Interrupt) bool { return c.Decision.Kind == DecisionEdit })
}

// calls are those that something has to be done about: made, or answered without. A client's result
// that came with its input stands in the conversation, and what it abandoned is left out of it; and so is, in a run
// that is cancelled, what nobody has decided about.
func (w *Interrupts) calls() []call {
	var calls []call
	for _, c := range w.Calls {
		d := c.Decision
		if d == nil || c.Child > 0 || w.Handoff.is(c.Index) || d.Kind == DecisionAbandon || d.Kind == DecisionToolResult && d.Input == 0 {
			continue
		}
		calls = append(calls, c.decided(w.Subagents))
	}
	return append(calls, w.resumed()...)
}

// decided is the call, with what was decided about it.
func (c Interrupt) decided(delegates []AgentRef) call {
	d := c.Decision
	next := call{
		index: c.Index, id: c.ID, tool: c.Tool, queue: c.Queue, sequence: c.Sequence,
		decision: d, votes: c.decidedWith(), delegate: c.to(delegates), raised: c.Asked,
	}
	if d.Kind == DecisionExpire && c.Approval != nil {
		next.onExpiry = c.Approval.OnExpiry
	}
	if d.Remember != "" {
		next.remember = c.Approval.Policy
	}
	return next
}
