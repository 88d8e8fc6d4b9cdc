package runs

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
	Kind   DecisionKind `json:"kind"`
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

// Approves tells whether a decision is for making the call.
func (d Decision) Approves() bool { return d.Kind == DecisionApprove || d.Kind == DecisionEdit }

// isRepeatedBy tells whether another one says the same.
func (d Decision) isRepeatedBy(other Decision) bool {
	return d.Digest == other.Digest && d.Kind == other.Kind
}
