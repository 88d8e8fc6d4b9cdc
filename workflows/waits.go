package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Waits is what a thread waits for behind the end of an AG-UI run: the calls of its last message that
// were not made, each until there is a decision about it.
type Waits struct {
	MessageID string    `json:"messageId"`
	Calls     []Waiting `json:"calls"`
	// Delegates are the agents that the calls hand work to.
	Delegates []Delegate `json:"delegates,omitempty"`
}

// MaxWaits bounds the calls that a run may end with: they go on as one payload, with the run and those
// that wait behind it.
const (
	MaxWaits    = 16
	maxDecision = 256 // bytes
)

// fits tells whether that payload has room for the calls, and for a decision about each.
func (w *Waits) fits(in RunInput) bool {
	if len(w.Calls) > MaxWaits {
		return false
	}
	in.Queue, in.Resume = nil, nil
	body, err := encode(Parked{Run: in, Waits: w}) //workflowcheck:ignore the same value gives the same text
	return err == nil && len(body)+len(w.Calls)*maxDecision+maxQueue <= MaxPayload
}

// Waiting is a call that was not made.
type Waiting struct {
	Call
	Index int `json:"index"` // its place in the message
	// Expires is when nobody can decide any more; zero = never.
	Expires time.Time `json:"expires,omitzero"`
	// Votes are those for making the call, as long as they are fewer than the approval's quorum.
	Votes []Decision `json:"votes,omitempty"`
	// Escalations is how many have come.
	Escalations int       `json:"escalations,omitempty"`
	Decision    *Decision `json:"decision,omitempty"`
}

// Notice asks ActivityNotify to make known what has happened to questions that a thread waits with.
type Notice struct {
	Run       Run         `json:"run"`
	Agent     string      `json:"agent"`
	Revision  string      `json:"revision"`
	Event     NoticeEvent `json:"event"`
	Opened    time.Time   `json:"opened"` // when the run had ended with the questions
	At        time.Time   `json:"at"`     // when it happened
	MessageID string      `json:"messageId"`
	// Calls are those that it happened to, as they are now.
	Calls []Waiting `json:"calls"`
	// After is a record that the log has to have: the run's terminal one.
	After uint64 `json:"after"`
}

// NoticeEvent is what has happened.
type NoticeEvent string

// What may have happened.
const (
	NoticeOpened    NoticeEvent = "opened"
	NoticeReminded  NoticeEvent = "reminded"
	NoticeEscalated NoticeEvent = "escalated"
	NoticeVoted     NoticeEvent = "voted" // one more approves, and others have to
	NoticeDecided   NoticeEvent = "decided"
	NoticeExpired   NoticeEvent = "expired"
)

// Approval says that a person decides about a call before it is made, and by which rule.
type Approval struct {
	// Rule is its place in the agent's definition.
	Rule int `json:"rule"`
	// Args is the digest of the arguments that the model wrote: they are what is decided about.
	Args string `json:"args"`
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

// Verdict is what was decided about a call.
type Verdict string

// The verdicts.
const (
	VerdictApprove Verdict = "approve" // make it
	VerdictEdit    Verdict = "edit"    // make it with other arguments
	VerdictReject  Verdict = "reject"  // tell the model that it may not be made, and why
	VerdictAnswer  Verdict = "answer"  // give the model this result instead
	VerdictCancel  Verdict = "cancel"  // nobody is going to decide
	VerdictExpire  Verdict = "expire"  // nobody decided in time
	VerdictResult  Verdict = "result"  // the client's result of its own call
	VerdictAbandon Verdict = "abandon" // the client went on without it
)

// Decision is what somebody decided about a call. What they said is in the log.
type Decision struct {
	CallID  string  `json:"call"`
	Verdict Verdict `json:"verdict"`
	// Digest is that of the decision, with all that was said: the same again is the same.
	Digest string `json:"digest,omitempty"`
	// Input is the proposal that has what was said, 0 if nothing was.
	Input uint64 `json:"input,omitempty"`
	// Args is the digest of the arguments that the call is to be made with.
	Args string `json:"args,omitempty"`
	// By is a digest of who decided: nobody counts twice.
	By string `json:"by,omitempty"`
	// Remember makes further calls of the tool on this thread, to which the same rule applies, without asking.
	Remember bool `json:"remember,omitempty"`
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
	// Error is ErrorUnknownCall, ErrorDecided or ErrorExpired.
	Error string `json:"error,omitempty"`
	// Recorded is the decision that stands, if there was one before; the same one if there is no error.
	Recorded *Decision `json:"recorded,omitempty"`
}

// Codes of a DecisionResult.
const (
	ErrorUnknownCall = "unknown_call"
	ErrorDecided     = "decided"
	ErrorExpired     = "expired"
)

// DigestArgs is what arguments are compared by, between what was decided about and what is executed.
func DigestArgs(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return hex.EncodeToString(sum[:16])
}

func (c Call) waits() bool { return c.Client || c.Approval != nil }

// waits are the calls of an answer that are not made before the run ends, and since when.
func (a ModelAnswer) waits(now time.Time) *Waits {
	w := &Waits{MessageID: a.MessageID, Delegates: a.Delegates}
	for i, c := range a.Calls {
		if !c.waits() {
			continue
		}
		waiting := Waiting{Call: c, Index: i}
		if c.Approval != nil && c.Approval.Expires > 0 {
			waiting.Expires = now.Add(c.Approval.Expires)
		}
		w.Calls = append(w.Calls, waiting)
	}
	return w
}

// asks tells whether people have to decide about a call, as opposed to the client's own tools.
func (w *Waits) asks() bool {
	return slices.ContainsFunc(w.Calls, func(c Waiting) bool { return c.Approval != nil })
}

// outcome is how a run ends with these: calls of the client's are no question.
func (w *Waits) outcome() Outcome {
	if w.asks() {
		return OutcomeInterrupt
	}
	return OutcomeSuccess
}

func (w *Waits) find(callID string) *Waiting {
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

// open are the calls that nothing was decided about.
func (w *Waits) open(except ...Decision) (ids []string, asks bool) {
	for _, c := range w.Calls {
		if c.Decision == nil && !slices.ContainsFunc(except, c.answeredBy) {
			ids, asks = append(ids, c.ID), asks || c.Approval != nil
		}
	}
	return ids, asks
}

// answeredBy tells whether a decision is one about this call: results are for the client's own, anything
// else for those that people decide about.
func (c Waiting) answeredBy(d Decision) bool {
	return d.CallID == c.ID && c.Client == (d.Verdict == VerdictResult)
}

func (w *Waits) settled() bool {
	ids, _ := w.open()
	return len(ids) == 0
}

// decide takes a decision about a call, if there is none.
func (w *Waits) decide(d Decision, now time.Time) DecisionResult {
	c := w.find(d.CallID)
	switch {
	case c == nil, !c.answeredBy(d):
		return DecisionResult{Error: ErrorUnknownCall}
	case c.Decision != nil && c.Decision.Digest == d.Digest && c.Decision.Verdict == d.Verdict:
		return DecisionResult{Recorded: c.Decision}
	case c.Decision != nil && c.Decision.Verdict == VerdictExpire, c.Decision == nil && c.expired(now) && d.Verdict != VerdictCancel:
		return DecisionResult{Error: ErrorExpired, Recorded: c.Decision}
	case c.Decision != nil:
		return DecisionResult{Error: ErrorDecided, Recorded: c.Decision}
	}
	if c.Approval != nil && d.Args == "" {
		d.Args = c.Approval.Args
	}
	c.Decision = &d
	return DecisionResult{}
}

func (c Waiting) expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// expire decides about the calls whose time is over.
func (w *Waits) expire(now time.Time) {
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil && c.expired(now) {
			c.Decision = &Decision{CallID: c.ID, Verdict: VerdictExpire}
		}
	}
}

// next is when the next call expires; zero = none does.
func (w *Waits) next() time.Time {
	var next time.Time
	for _, c := range w.Calls {
		if c.Decision == nil && !c.Expires.IsZero() && (next.IsZero() || c.Expires.Before(next)) {
			next = c.Expires
		}
	}
	return next
}

// abandon gives up the client's calls that nobody answered: it went on without.
func (w *Waits) abandon() {
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil && c.Client {
			c.Decision = &Decision{CallID: c.ID, Verdict: VerdictAbandon}
		}
	}
}

// fails tells whether the run that goes on has to end, since nobody decided in time.
func (w *Waits) fails() bool {
	return slices.ContainsFunc(w.Calls, func(c Waiting) bool {
		return c.Decision.Verdict == VerdictExpire && c.Approval.OnExpiry == OnExpiryFail
	})
}

// edits tells whether calls are to be made with other arguments than the model's.
func (w *Waits) edits() bool {
	return w != nil && slices.ContainsFunc(w.Calls, func(c Waiting) bool { return c.Decision.Verdict == VerdictEdit })
}

// calls are those that something has to be done about: made, or answered without. A client's result
// that came with its input stands in the conversation, and what it abandoned is left out of it.
func (w *Waits) calls() []call {
	var calls []call
	for _, c := range w.Calls {
		d := c.Decision
		if d.Verdict == VerdictAbandon || d.Verdict == VerdictResult && d.Input == 0 {
			continue
		}
		next := call{index: c.Index, id: c.ID, tool: c.Tool, decision: d, delegate: c.to(w.Delegates)}
		if d.Verdict == VerdictExpire {
			next.onExpiry = c.Approval.OnExpiry
		}
		calls = append(calls, next)
	}
	return calls
}
