package runs

// DecisionKind is what a [Decision] says.
type DecisionKind string

// The kinds of decisions.
const (
	DecisionApprove    DecisionKind = "approve" // make the call
	DecisionEdit       DecisionKind = "edit"    // make the call with other arguments
	DecisionReject     DecisionKind = "reject"  // tell the model that it may not be made, and why
	DecisionAnswer     DecisionKind = "answer"  // give the model this result instead, or the tool this answer
	DecisionCancel     DecisionKind = "cancel"  // no decision is awaited any more
	DecisionExpire     DecisionKind = "expire"  // the interrupt expired without a decision
	DecisionToolResult DecisionKind = "result"  // the result of the client's own tool
	DecisionAbandon    DecisionKind = "abandon" // the client went on without a result
)

// Decision is the resolution of an interrupt. Its content (arguments, reasons, answers) is in the
// log.
type Decision struct {
	CallID string       `json:"call"`
	Kind   DecisionKind `json:"kind"`
	// Question is the number of the question that is answered, from 1 (see Question.Number); 0 = the
	// decision is about making the call.
	Question int `json:"question,omitempty"`
	// Digest is the digest of the decision with its content. A decision with the same kind and
	// digest is a repetition.
	Digest string `json:"digest,omitempty"`
	// Proposal is the sequence of the proposal with the content; 0 = there is none.
	Proposal uint64 `json:"proposal,omitempty"`
	// ArgsDigest is the digest of the arguments with which the call is made, or of the answer to a
	// question.
	ArgsDigest string `json:"args,omitempty"`
	// Allowed is the new value of a soft limit, in its units, if an edit sets it.
	Allowed int64 `json:"allowed,omitempty"`
	// By is a digest of the principal who decided: each counts once in a quorum.
	By string `json:"by,omitempty"`
	// Remember says which further calls of the tool are approved, too, as long as the rule stays
	// the same. Only DecisionApprove has it.
	Remember RememberScope `json:"remember,omitempty"`
}

// ShortDigest returns the part of the digest of a proposal that a workflow gets: enough to tell
// decisions apart.
func ShortDigest(digest string) string { return digest[:min(len(digest), 32)] }

// DecideRequest is the payload of UpdateDecide. Each decision is judged for itself.
type DecideRequest struct {
	Decisions []Decision `json:"decisions"`
}

// DecideResult is the result of UpdateDecide, with a result for each decision.
type DecideResult struct {
	Results []DecisionResult `json:"results"`
}

// DecisionResult tells what happened to a decision. It was taken if neither Error nor Recorded is
// set.
type DecisionResult struct {
	// Error is ErrorUnknownCall, ErrorDecided, ErrorExpired or ErrorOtherEdit.
	Error string `json:"error,omitempty"`
	// Recorded is the earlier decision, which stands. Without an Error it is the same as the new
	// one.
	Recorded *Decision `json:"recorded,omitempty"`
	// Missing is how many further votes for the same arguments complete the quorum. Tallies
	// are the votes so far, for each set of arguments.
	Missing int     `json:"missing,omitempty"`
	Tallies []Tally `json:"tallies,omitempty"`
	// Resolved tells that all interrupts of the thread are resolved: it continues.
	Resolved bool `json:"resolved,omitempty"`
}

// Codes of a DecisionResult.
const (
	ErrorUnknownCall = "unknown_call"
	ErrorDecided     = "decided"
	ErrorExpired     = "expired"
	// ErrorOtherEdit: others have voted for another edit of the arguments, or for another answer.
	ErrorOtherEdit = "other_edit"
)

// Approves reports whether the call is made.
func (d Decision) Approves() bool { return d.Kind == DecisionApprove || d.Kind == DecisionEdit }

// isRepeatedBy reports whether another one says the same.
func (d Decision) isRepeatedBy(other Decision) bool {
	return d.Digest == other.Digest && d.Kind == other.Kind
}

// Vote refers to the record with an approver's vote.
type Vote struct {
	Digest   string `json:"digest"`
	Proposal uint64 `json:"proposal,omitempty"`
}

// Tally counts the votes for one set of arguments, or for one answer to a question.
type Tally struct {
	// Kind is DecisionApprove for the model's arguments, DecisionEdit for others, or DecisionAnswer.
	Kind       DecisionKind `json:"kind"`
	ArgsDigest string       `json:"args"` // digest of the proposed arguments, or of the answer
	Votes      int          `json:"votes"`
	Missing    int          `json:"missing"` // votes that complete the quorum
}

// RememberScope says which further calls of a tool on the thread an approval covers, as long as the
// rule that asked stays the same.
type RememberScope string

// The scopes. The zero value covers the approved call only.
const (
	RememberArguments RememberScope = "arguments" // calls with equal arguments
	RememberTool      RememberScope = "tool"      // all calls of the tool
)

// narrowest returns the scope that both approvals cover.
func (s RememberScope) narrowest(other RememberScope) RememberScope {
	if s == "" || other == "" {
		return ""
	}
	if s == RememberArguments {
		return s
	}
	return other
}
