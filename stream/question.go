package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

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

// Raised returns the question with which a step has ended.
func (l *Log) Raised(ctx context.Context, seq uint64) (*Raised, error) {
	rec, err := l.at(ctx, seq)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("%w: question %d", ErrLogLost, seq)
	}
	var done Result
	if err := rec.Result(ctx, &done); err != nil {
		return nil, err
	}
	if done.Raised == nil {
		return nil, fmt.Errorf("stream: record %d has no question", seq)
	}
	return done.Raised, nil
}

// MetadataQuestion is where a question of a tool says which one it is.
const MetadataQuestion = "perdure.question"

// RaisedBy is what a question of a tool says there.
type RaisedBy struct {
	Agent    string    `json:"agent"`
	Revision string    `json:"revision"`
	Tool     string    `json:"tool"`
	Number   int       `json:"number"`
	AskedAt  time.Time `json:"askedAt"`
}

// RaisedIn reads which question of its call an interrupt is. Its number is 0 if no tool asks, and it is about
// whether the call may be made.
func RaisedIn(question agui.Interrupt) (RaisedBy, error) {
	var by RaisedBy
	raw, ok := question.Metadata[MetadataQuestion]
	if !ok {
		return by, nil
	}
	if err := json.Unmarshal(raw, &by); err != nil {
		return by, fmt.Errorf("stream: question %s: %w", question.ID, err)
	}
	return by, nil
}

// answers tells whether a decision is the one about a question.
func (d Decided) answers(question agui.Interrupt) bool {
	by, err := RaisedIn(question)
	return err == nil && question.ToolCallID == d.CallID && by.Number == d.Question
}
