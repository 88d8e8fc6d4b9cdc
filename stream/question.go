package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

// Raised returns the question with which a step has ended.
func (l *Log) Raised(ctx context.Context, seq uint64) (*Raised, error) {
	rec, err := l.At(ctx, seq)
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

// Answers tells whether a decision is the one about a question.
func (d Decided) Answers(question agui.Interrupt) bool {
	by, err := RaisedIn(question)
	return err == nil && question.ToolCallID == d.CallID && by.Number == d.Question
}
