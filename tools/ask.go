package tools

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// asking has the answers of a call, and counts its questions.
type asking struct {
	mu      sync.Mutex
	answers []Answer
	next    int
}

// askingKey is the key of an asking in a context.
type askingKey struct{}

// Ask asks people a question during a call, and returns their answer.
//
// Without an answer it returns an error that the tool must return, wrapped or unchanged, which ends
// the call. The run then waits, for days if necessary, without using resources. When people have
// answered, the tool is called again from its beginning with the same arguments, and Ask returns
// the answer. A tool may ask several times, one after the other. Its questions are recognized by
// their position and their content: a question whose content has changed is asked again, with all
// that follow.
//
// Therefore everything that the tool does before it asks is repeated, and so are its reports. Ask
// first and act then, or use the call's [IdempotencyKey], which stays the same.
//
// If nobody is going to answer, the error is a *RefusedError, whose text the tool may return to the
// model. It is a *QuestionError if the question is invalid or the answer does not fit T, and
// [ErrNobodyToAsk] outside of a call. A question without a schema gets the schema of T.
func Ask[T any](ctx context.Context, q Question) (T, error) {
	var answer T
	if len(q.ResponseSchema) == 0 {
		schema, err := jsonschema.For[T](nil)
		if err != nil {
			return answer, &QuestionError{Reason: "the type of its answer", Err: err}
		}
		if q.ResponseSchema, err = json.Marshal(schema); err != nil {
			return answer, &QuestionError{Reason: "the type of its answer", Err: err}
		}
	}
	raw, err := AskJSON(ctx, q)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(raw.Content, &answer); err != nil {
		return answer, &QuestionError{Reason: "the answer is of another type", Err: err}
	}
	return answer, nil
}

// Confirm asks people for yes or no, like [Ask]. A person who declines to answer has said no.
func Confirm(ctx context.Context, message string) (bool, error) {
	answer, err := Ask[struct {
		Approved bool `json:"approved"`
	}](ctx, Question{Reason: ReasonConfirmation, Message: message})
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == Declined {
		return false, nil
	}
	return answer.Approved, err
}

// AskJSON is [Ask] for tools whose questions and answers have no Go type.
func AskJSON(ctx context.Context, q Question) (Answer, error) {
	q, err := q.complete()
	if err != nil {
		return Answer{}, err
	}
	a, ok := ctx.Value(askingKey{}).(*asking)
	if !ok {
		return Answer{}, ErrNobodyToAsk
	}
	answer, index, ok := a.take(q.Digest())
	switch {
	case !ok:
		return Answer{}, &Raised{Question: q, Index: index}
	case answer.Status != Answered:
		return Answer{}, &RefusedError{Status: answer.Status, Words: answer.Words}
	}
	return answer, nil
}

// Raise ends a call with a question after those that have answers. It is for tools that do not
// begin again but continue with the [Answers]. It always returns an error: one that the tool must
// return, a *QuestionError, or [ErrNobodyToAsk].
func Raise(ctx context.Context, q Question) error {
	q, err := q.complete()
	if err != nil {
		return err
	}
	a, ok := ctx.Value(askingKey{}).(*asking)
	if !ok {
		return ErrNobodyToAsk
	}
	return &Raised{Question: q, Index: len(a.answers)}
}

// Answers returns the answers of the call's questions so far. A tool with a State finds it in the
// last one.
func Answers(ctx context.Context) []Answer {
	if a, ok := ctx.Value(askingKey{}).(*asking); ok {
		return a.answers
	}
	return nil
}

// take returns the answer to the next question of the call; ok is false if it has none yet.
func (a *asking) take(question string) (answer Answer, index int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	index = a.next
	if index >= len(a.answers) || a.answers[index].Question != question {
		return Answer{}, index, false
	}
	a.next++
	return a.answers[index], index, true
}

// ErrNobodyToAsk is returned for a question outside of a call, or in a call whose caller does not
// ask people.
var ErrNobodyToAsk = errors.New("tools: there is nobody to ask")
