package inbox

import (
	"encoding/json"
	"time"
)

// MaxArgs bounds the arguments in an Approval, in bytes. Longer arguments are only in the thread.
const MaxArgs = 8 << 10

// Approval is an interrupt that approvers decide, open or resolved: the approval of a tool call, a
// question of a tool, or a soft limit. It is part of the API: as an item of the inbox and in
// webhooks.
type Approval struct {
	ID       string `json:"id"`
	ThreadID string `json:"threadId"`
	// RunID is the run that opened the interrupt.
	RunID      string `json:"runId"`
	Agent      string `json:"agent"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	// Reason is the kind of the interrupt: tool_call for the approval of a call; otherwise the
	// interrupt is a question, and its answer must match ResponseSchema.
	Reason         string          `json:"reason,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// Args are the call's arguments: a JSON object, or a string if the model wrote invalid JSON.
	// ArgsTruncated reports that they are left out because they are longer than MaxArgs.
	Args          json.RawMessage `json:"args,omitempty"`
	ArgsTruncated bool            `json:"argsTruncated,omitempty"`
	ArgsDigest    string          `json:"argsDigest"`
	// Step is the path of the pipeline step that waits; "" = no step.
	Step        string     `json:"step,omitempty"`
	Message     string     `json:"message"`
	RequestedAt time.Time  `json:"requestedAt"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	Voting
}

// Voting is who may decide an interrupt, and who has decided.
type Voting struct {
	// Approvers may decide: subjects, and roles as role:name. Empty = the rule names nobody, so those
	// decide that may decide in the thread.
	Approvers []string `json:"approvers"`
	// Quorum is the number of approvers that have to approve, at least 1.
	Quorum int `json:"quorum"`
	// Requester is the subject that sent the run's input; "" = unknown.
	Requester string `json:"requester,omitempty"`
	// Contributors are the subjects whose content the model has received: the requesters of the
	// thread's runs, and those that have sent steering messages, results of client tools and
	// answers. NotByRequester excludes them from the decision.
	Contributors   []string `json:"contributors,omitempty"`
	NotByRequester bool     `json:"notByRequester,omitempty"`
	// Escalations is the number of escalations so far. Each adds approvers.
	Escalations int `json:"escalations,omitempty"`
	// EscalatesAt is when an open interrupt escalates next; nil = never.
	EscalatesAt *time.Time `json:"escalatesAt,omitempty"`
	// Decisions are the valid ones: the votes of an open interrupt, and the decisions that resolved
	// a decided one.
	Decisions []Decision `json:"decisions"`
	// Tallies counts the votes of an open interrupt with a quorum: first those for Args, then
	// those for edits.
	Tallies []Tally `json:"tallies,omitempty"`
}

// Tally is the votes for one set of arguments.
type Tally struct {
	ArgsDigest string `json:"argsDigest"`
	// Decision is approve for the model's arguments, edit for other ones.
	Decision string `json:"decision"`
	Votes    int    `json:"votes"`
	// Missing is the number of votes that complete the quorum.
	Missing int `json:"missing"`
}

// Decision is a vote, a decision, or an expiry.
type Decision struct {
	// Decision is approve, edit, reject, answer, cancel or expire.
	Decision string `json:"decision"`
	// By is the subject that decided; "" = an anonymous caller, or an expiry.
	By string `json:"by,omitempty"`
	// At is the time of the decision or expiry.
	At time.Time `json:"at"`
	// Channel is how the decision reached the API: input, http, websocket, batch, link or cli; or event
	// if an event has ended a wait.
	Channel string `json:"channel,omitempty"`
	// Issuer is the subject that created the link by which the decision was made; "" = there was no
	// link, or an anonymous caller created it.
	Issuer string `json:"issuer,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Digest is the digest of the decision with its content, ArgsDigest that of the arguments with
	// which the tool is called.
	Digest     string `json:"digest,omitempty"`
	ArgsDigest string `json:"argsDigest,omitempty"`
	// Args are the arguments of an edit, Content is an answer. Truncated reports that they are left
	// out because they are longer than MaxArgs.
	Args      json.RawMessage `json:"args,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	// Remember is the scope of an approval that covers further calls: arguments or tool; "" = this
	// call only.
	Remember string `json:"remember,omitempty"`
}

// Event is an event of an interrupt.
type Event struct {
	Type EventType `json:"type"`
	At   time.Time `json:"at"`
	// Approval is the interrupt after the event.
	Approval Approval `json:"approval"`
}

// EventType is the type of an event.
type EventType string

// The types of events. They equal runs.NotificationEvent.
const (
	Opened    EventType = "opened"
	Reminded  EventType = "reminded"
	Escalated EventType = "escalated"
	// Voted: a vote that does not complete the quorum.
	Voted   EventType = "voted"
	Decided EventType = "decided"
	Expired EventType = "expired"
)

// Types are all types of events.
var Types = []EventType{Opened, Reminded, Escalated, Voted, Decided, Expired}

// Settles reports whether the event resolves its interrupt.
func (t EventType) Settles() bool { return t == Decided || t == Expired }
