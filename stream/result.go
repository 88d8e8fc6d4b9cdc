package stream

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// Result is what a finished step leaves for reduction and for a later attempt of it.
type Result struct {
	// Messages are finished messages, in the order in which they joined the conversation. Changes of
	// the state are not here: the step's events are what counts. Nor is what activities say; on the main
	// lane one that is named here, by its id, stands in this place among the messages.
	Messages []agui.Message `json:"messages,omitempty"`
	// Edited are the arguments, by tool call, with which a call was made instead of the model's.
	Edited map[string]string `json:"edited,omitempty"`
	// Decided is what people decided about the call that the step made, or did not make.
	Decided *Decided `json:"decided,omitempty"`
	// Handoff tells that the call has handed the thread over.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Raised is the question with which the step ended, instead of the call's result.
	Raised *Raised `json:"raised,omitempty"`
	// ProviderIDs are what the model called its tool calls, by our id: it wants to hear its own.
	ProviderIDs map[string]string `json:"providerIds,omitempty"`
	// Scope marks the messages as those of one place in the agent's work; "" = none in particular.
	Scope string `json:"scope,omitempty"`
	// Kept is what later steps look up here (see Log.Kept). It is no part of the conversation.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Summary tells that what is kept stands for messages.
	Summary *Summary `json:"summary,omitempty"`
	// Answer is what the step's activity tells the workflow: references and small decisions only.
	Answer json.RawMessage `json:"answer,omitempty"`
}

func (r *Result) AnswerID() string {
	for _, m := range r.Messages {
		if m.Role == agui.RoleAssistant {
			return m.ID
		}
	}
	return ""
}

// failed is the result of the record that ends an attempt which failed for good.
type failed struct {
	Detail string `json:"detail"`
}

// Raised is what the done of a tool call says that has ended with a question of the tool's: what people are
// asked, and what the call needs to be made anew.
type Raised struct {
	CallID string `json:"call"`
	Tool   string `json:"tool"`
	// Number counts the questions of the call, from 1. Index is the question's place among those whose answers
	// count, from 0.
	Number int `json:"number"`
	Index  int `json:"index"`
	// Args is the digest of the arguments that the call is made with, Key its idempotency key.
	Args string `json:"args"`
	Key  string `json:"key"`

	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	Metadata       agui.Metadata   `json:"metadata,omitempty"`
	// Digest is that of what is asked, State the tool's own.
	Digest string `json:"digest"`
	State  []byte `json:"state,omitempty"`

	// Replies are those to the questions before it.
	Replies []Reply `json:"replies,omitempty"`
}

// Reply is what came of a question.
type Reply struct {
	// Question is its digest, State the tool's own.
	Question string `json:"question"`
	State    []byte `json:"state,omitempty"`
	Verdict  string `json:"verdict"`
	// Proposal has what was said, 0 if nothing was.
	Proposal uint64 `json:"proposal,omitempty"`
}
