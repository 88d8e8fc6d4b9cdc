package inbox

import (
	"encoding/json"
	"time"
)

// MaxArgs bounds the arguments that an approval shows, in bytes; longer ones are in the thread.
const MaxArgs = 8 << 10

// Approval is a tool call that waits, or has waited, for a person: to be made, or for an answer to
// what its tool asks.
type Approval struct {
	ID         string `json:"id"`
	ThreadID   string `json:"threadId"`
	RunID      string `json:"runId"` // that ended with the question
	Agent      string `json:"agent"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	// Reason says what is asked: tool_call, whether the call may be made; else a question of the
	// tool's, whose answer is as ResponseSchema says.
	Reason         string          `json:"reason,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// Args are the call's arguments: a JSON object, or a string where the model wrote none.
	// ArgsTruncated tells that they are left out, being longer than MaxArgs.
	Args          json.RawMessage `json:"args,omitempty"`
	ArgsTruncated bool            `json:"argsTruncated,omitempty"`
	ArgsDigest    string          `json:"argsDigest"`
	// Step is the path of the step of a pipeline that asks; empty outside of pipelines.
	Step        string     `json:"step,omitempty"`
	Message     string     `json:"message"`
	RequestedAt time.Time  `json:"requestedAt"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	// Approvers may decide: subjects, and role:name; none = whoever may use the thread.
	Approvers []string `json:"approvers"`
	// Quorum is how many people have to approve, from 1.
	Quorum int `json:"quorum"`
	// Requester is who asked for the run, if that is known; NotByRequester keeps them from
	// deciding.
	Requester      string `json:"requester,omitempty"`
	NotByRequester bool   `json:"notByRequester,omitempty"`
	// Escalations is how many have come, each with more approvers.
	Escalations int `json:"escalations,omitempty"`
	// Decisions are those that count: votes while the approval waits, and what settled it at the
	// end.
	Decisions []Decision `json:"decisions"`
	// Proposals counts the votes while the approval waits for a quorum: first those for Args, then
	// those for an edit.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// Proposal is a set of arguments that approvers vote for.
type Proposal struct {
	ArgsDigest string `json:"argsDigest"`
	// Decision is approve for the model's arguments, edit for others.
	Decision string `json:"decision"`
	Votes    int    `json:"votes"`
	Missing  int    `json:"missing"` // votes that complete the quorum
}

// Decision is what somebody, or time, decided.
type Decision struct {
	// Decision is approve, edit, reject, answer, cancel or expire.
	Decision string `json:"decision"`
	// By is the subject who decided; empty if the caller did not say who it is, or nobody decided.
	By string `json:"by,omitempty"`
	// At is when it was said, or when time was over.
	At time.Time `json:"at"`
	// Channel is how the client says that it came: input, http, websocket, batch, link or cli.
	Channel string `json:"channel,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Digest is that of all that was said, ArgsDigest that of the arguments the call is made with.
	Digest     string `json:"digest,omitempty"`
	ArgsDigest string `json:"argsDigest,omitempty"`
	// Args are those of an edit, Content is an answer. What is longer than MaxArgs is left out,
	// which Truncated tells.
	Args      json.RawMessage `json:"args,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	// Remember is the scope of an approval that covers further calls: arguments or tool.
	Remember string `json:"remember,omitempty"`
}

// Event is something that happened to an approval.
type Event struct {
	Type EventType `json:"type"`
	At   time.Time `json:"at"`
	// Approval is as the event left it.
	Approval Approval `json:"approval"`
}

// EventType is what happened.
type EventType string

// The types.
const (
	Opened    EventType = "opened"
	Reminded  EventType = "reminded"
	Escalated EventType = "escalated"
	Voted     EventType = "voted" // one more approves, and others have to
	Decided   EventType = "decided"
	Expired   EventType = "expired"
)

// Types are all of them.
var Types = []EventType{Opened, Reminded, Escalated, Voted, Decided, Expired}

// Settles reports whether nothing waits any more.
func (t EventType) Settles() bool { return t == Decided || t == Expired }
