package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// ToolCall is the input of ActivityCallTool: one tool call.
type ToolCall struct {
	// Step.ID is the call's own, TurnStepID the ID of the step that all calls of the turn share.
	Step
	TurnStepID string `json:"turnStepId"`
	// Lane is the lane that the call writes to, LaneAfter its last record; 0 = all its records are
	// older than After.
	Lane      int    `json:"lane"`
	LaneAfter uint64 `json:"laneAfter,omitempty"`
	// CallID is the call's ID; "" = the answer has more than MaxCalls calls, and Index, the index
	// in the message, tells which one it is.
	CallID    string `json:"callId,omitempty"`
	Index     int    `json:"index,omitempty"`
	MessageID string `json:"messageId"`
	// Decision is what was decided about the call; nil = it was no interrupt.
	Decision *Decision `json:"decision,omitempty"`
	// QuestionRecord is the record with the question that the tool asked: the call is made again
	// with the answer. 0 = none.
	QuestionRecord uint64 `json:"question,omitempty"`
	// IsRemote tells that a remote agent has asked the question: there is no call to make, and the
	// activity only records the decision.
	IsRemote bool     `json:"remote,omitempty"`
	OnExpiry OnExpiry `json:"onExpiry,omitempty"`
	// ForClient tells that the client makes the call, which approvers have decided about: the activity
	// records the decision, and the call then waits for the client.
	ForClient bool `json:"forClient,omitempty"`
	// HandOverTo is the agent to which the call hands the thread over; "" = it does not.
	// HandOverRevision is the revision of that agent.
	HandOverTo       string `json:"handOverTo,omitempty"`
	HandOverRevision string `json:"handOverRevision,omitempty"`
	// Votes are those that approved before the deciding one. RememberedRule is the digest of the
	// rule under which the approval covers further calls; "" = it does not.
	Votes          []Vote `json:"votes,omitempty"`
	RememberedRule string `json:"remember,omitempty"`
	// Cancelled tells that the run was cancelled before the call began: the activity records the
	// decision, and does not call the tool.
	Cancelled bool `json:"cancelled,omitempty"`
	// OutlastsCancel tells that a cancel does not stop the call, because a step compensates for it:
	// whether it took effect must be known.
	OutlastsCancel bool `json:"outlastsCancel,omitempty"`
	// Beginning is set in the calls with which a run begins.
	Beginning *Beginning `json:"beginning,omitempty"`
	// Announces is set in the calls with which a subagent begins: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
}

// AfterAttempts returns the input for an activity that continues after earlier attempts.
func (c ToolCall) AfterAttempts(earlier EarlierAttempts) ToolCall {
	c.Earlier = earlier
	return c
}

// Stopping returns the input for a run that stops (see Step.Stops).
func (c ToolCall) Stopping() ToolCall {
	c.Stops = true
	return c
}

// AwaitQueue is the input of ActivityAwaitQueue, which waits for workers of a task queue. It fails
// after PERDURE_TOOL_GRACE.
type AwaitQueue struct {
	Queue string `json:"queue"`
}

// StoreResult is the first input of ActivityStoreToolResult; a ToolResult is the second. The
// activity puts the result into the log, and returns the Decision that refers to it.
type StoreResult struct {
	Run Ref `json:"run"`
}

// DigestArgs returns the digest by which approved arguments are compared with those that are
// executed.
func DigestArgs(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return hex.EncodeToString(sum[:16])
}

// AskedQuestion is a question that a tool asked, which ended its call, or a remote agent, which ended
// its run.
type AskedQuestion struct {
	// CallID is the ID of the call; of a remote agent that of its interrupt.
	CallID string `json:"call"`
	Tool   string `json:"tool,omitempty"`
	// Number is that of the Question.
	Number int `json:"number"`
	// Expires is how long people may answer; 0 = for ever.
	Expires time.Duration `json:"expires,omitempty"`
	// ExpiresAt is the latest time of a tool's question: the earlier of it and Expires counts. zero = there
	// is none.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Waits is that of the Question.
	Waits bool `json:"waits,omitempty"`
	// Approval is the rule about who answers; nil = callers that may decide in the thread.
	Approval *Approval `json:"approval,omitempty"`
}

// ToolResult is the payload of SignalToolResult, for programs that have only Temporal's SDK: the
// result of a client's tool call. It is the only content that enters a history, at most MaxPayload
// bytes of it. ActivityStoreToolResult moves it into the log.
type ToolResult struct {
	CallID string `json:"toolCallId"`
	// Content is a JSON string, or a list of AG-UI content parts.
	Content json.RawMessage `json:"content"`
	// Error is a JSON string that says why the call failed; none = it succeeded.
	Error json.RawMessage `json:"error,omitempty"`
}
