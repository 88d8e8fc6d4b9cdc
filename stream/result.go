package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/exact"
)

// Result is the result of a finished step: the content of a done record. Snapshots fold it, and a
// later attempt of the step returns its Answer.
type Result struct {
	// Messages are the finished messages, in the order of the conversation. Changes of the state
	// and the content of activities are in the step's events. An activity of the main lane is
	// listed here with its ID only, for its place among the messages.
	Messages []agui.Message `json:"messages,omitempty"`
	// Repair is what the model is told about the last of Messages, an invalid answer: a user message
	// that no client sees. It follows Messages in the conversation; nil = there is none.
	Repair *agui.Message `json:"repair,omitempty"`
	// Edited are the arguments that approvers have set, by tool call ID.
	Edited map[string]string `json:"edited,omitempty"`
	// Decided is the decision about the step's tool call; nil = there was no interrupt.
	Decided *Decided `json:"decided,omitempty"`
	// Handoff tells that the step's tool call has handed the thread over.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Question is the question with which the tool call ended, instead of a result.
	Question *ToolQuestion `json:"question,omitempty"`
	// Remote is set in the done record of a remote agent's run.
	Remote *RemoteRun `json:"remote,omitempty"`
	// ProviderIDs are the model provider's IDs of the tool calls, by their IDs in the thread. A
	// request to the provider needs its own IDs. Those of a remote agent are of the messages with
	// results whose IDs the agent has changed.
	ProviderIDs map[string]string `json:"providerIds,omitempty"`
	// TenantAgents are the agents of the tenant to which the step hands work: a subagent, the agent
	// of a step of a pipeline, or one to which the thread is handed over.
	TenantAgents []AgentRevision `json:"tenantAgents,omitempty"`
	// Predicted are the members of the state that follow arguments of the step's tool calls, by the
	// ID of the call.
	Predicted map[string][]Predicted `json:"predicted,omitempty"`
	// Scope marks the messages as those of one step of a pipeline; "" = none.
	Scope string `json:"scope,omitempty"`
	// Visibility says who sees the messages. ShownCalls are the tool calls that clients see even
	// so, because they have interrupts: calls of the messages, or of earlier ones of the thread.
	Visibility Visibility `json:"visibility,omitempty"`
	ShownCalls []string   `json:"shownCalls,omitempty"`
	// Kept is for later steps (see Log.Kept). It is not part of the conversation.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Summary tells that Kept is a summary of messages.
	Summary *Summary `json:"summary,omitempty"`
	// Finished are the steps of a pipeline that the step has finished, and after which a fork may
	// begin.
	Finished []FinishedStep `json:"finished,omitempty"`
	// Title is the title that a model has written for the thread; "" = none. Only records on LaneTitle
	// have it.
	Title string `json:"title,omitempty"`
	// Answer is what the activity returns to the workflow: references and small decisions.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// FinishedStep is a step of a pipeline that has finished. Index is that of its STEP_FINISHED among the
// events of the record, Path the path of the step, with the rounds of loops.
type FinishedStep struct {
	Index int    `json:"index"`
	Path  string `json:"path"`
}

// Visibility says who sees a message of the thread.
type Visibility string

// The visibilities of messages.
const (
	// VisibleToAll messages are seen by clients, and by models as their agent's conversation says.
	VisibleToAll Visibility = ""
	// VisibleToAgent messages are of a subagent that a hidden step has called: no client sees them.
	VisibleToAgent Visibility = "agent"
	// VisibleToStep messages are of a hidden step: only the model of the same step sees them.
	VisibleToStep Visibility = "step"
)

// Predicted is a member of the state that the model's arguments have changed before the call was
// made. It is restored if the call is not made, or fails.
type Predicted struct {
	// Path is the JSON pointer of the member, Digest that of the predicted value.
	Path   string `json:"path"`
	Digest string `json:"digest"`
	// Before is the value before the prediction; nil = there was none.
	Before json.RawMessage `json:"before,omitempty"`
}

// PredictedDigest returns the digest of a predicted value, whatever the order of its members.
func PredictedDigest(value json.RawMessage) string {
	var decoded any
	if json.Unmarshal(value, &decoded) == nil {
		if sorted, err := json.Marshal(decoded); err == nil {
			value = sorted
		}
	}
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:16])
}

// AnswerID returns the ID of the assistant's message; "" = the result has none.
func (r *Result) AnswerID() string {
	for _, m := range r.Messages {
		if m.Role == agui.RoleAssistant {
			return m.ID
		}
	}
	return ""
}

// failureDetail is the result of an attempt record that ends a step which failed for good
// (Attempt.Fail).
type failureDetail struct {
	Detail string `json:"detail"`
}

// ToolQuestion is the question with which a tool call ended: the interrupt for the approvers, and
// the data with which the call is made again with the answer.
type ToolQuestion struct {
	CallID string `json:"call"`
	Tool   string `json:"tool"`
	// Number counts the questions of the call, from 1. Index is the question's index among those
	// whose answers count.
	Number int `json:"number"`
	Index  int `json:"index"`
	// Args is the digest of the call's arguments, Key its idempotency key.
	Args string `json:"args"`
	Key  string `json:"key"`

	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	Metadata       agui.Metadata   `json:"metadata,omitempty"`
	// Wait is what the call waits for instead of the user; nil = it asks the user.
	Wait *Wait `json:"wait,omitempty"`
	// Digest is that of the question, State the tool's own data, opaque to Perdure.
	Digest string `json:"digest"`
	State  []byte `json:"state,omitempty"`

	// Replies are those to the call's earlier questions.
	Replies []Reply `json:"replies,omitempty"`
}

// Wait is what a tool call waits for instead of the user: an event, or only a time.
type Wait struct {
	// Kind is WaitTimer or WaitEvent.
	Kind WaitKind `json:"kind"`
	// Event is the name of the event, Match has values of its data by their path.
	Event string       `json:"event,omitempty"`
	Match exact.Object `json:"match,omitempty"`
}

// MetadataWait is the key of a Wait in the metadata of an interrupt.
const MetadataWait = "perdure.wait"

// Reply is the decision about one question of a tool call.
type Reply struct {
	// Question is the question's digest, State the tool's own data from that question.
	Question string `json:"question"`
	State    []byte `json:"state,omitempty"`
	Kind     string `json:"kind"`
	// Proposal is the sequence of the decision; 0 = the question expired.
	Proposal uint64 `json:"proposal,omitempty"`
}
