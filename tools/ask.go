package tools

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// asking is the state of a call's questions. It is created for each attempt of a call, and lives in
// its context.
type asking struct {
	mu      sync.Mutex // guards next
	answers []Answer   // of the questions so far; never modified
	next    int        // position of the next question
}

// askingKey is the context key of an asking.
type askingKey struct{}

// Ask asks the user a question during a call, and returns the answer.
//
// Without an answer, Ask returns an error that ends the call; the tool must return it, wrapped or
// unchanged. The run then waits, for days if necessary, without using resources. After the answer,
// the tool is called again from its beginning with the same arguments, and Ask returns the answer.
// A tool can ask several questions, one after the other. A question is identified by its position
// and its content. If the content has changed, this question and all later ones are asked again.
//
// Therefore everything that the tool does before a question is repeated, including its reports. Ask
// first and act afterwards, or use the call's [IdempotencyKey], which stays the same.
//
// If nobody will answer, the error is a *RefusedError, whose text the tool may return to the model.
// The error is a *QuestionError if the question is invalid or the answer does not fit T, and
// [ErrNobodyToAsk] outside of a call. A question without a schema gets the schema of T.
func Ask[T any](ctx context.Context, q Question) (T, error) {
	var answer T
	if len(q.ResponseSchema) == 0 {
		schema, err := jsonschema.For[T](nil)
		if err != nil {
			return answer, &QuestionError{Reason: "the type of the answer", Err: err}
		}
		if q.ResponseSchema, err = json.Marshal(schema); err != nil {
			return answer, &QuestionError{Reason: "the type of the answer", Err: err}
		}
	}
	raw, err := AskJSON(ctx, q)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(raw.Content, &answer); err != nil {
		return answer, &QuestionError{Reason: "the answer does not fit the Go type", Err: err}
	}
	return answer, nil
}

// Confirm asks the user a yes-or-no question, like [Ask]. If the user declines to answer, it
// returns false without an error.
func Confirm(ctx context.Context, message string) (bool, error) {
	answer, err := Ask[struct {
		Approved bool `json:"approved"`
	}](ctx, Question{Reason: ReasonConfirmation, Message: message})
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == Declined {
		return false, nil
	}
	return answer.Approved, err
}

// AskJSON is [Ask] for questions and answers without a Go type.
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

// Raise ends a call with a new question after the answered ones. It is for tools that continue from
// the [Answers] instead of starting again. It always returns an error: one that the tool must
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

// Answers returns the answers to the call's questions so far. They must not be modified. A tool
// that sets [Question.State] finds it in the last one.
func Answers(ctx context.Context) []Answer {
	if a, ok := ctx.Value(askingKey{}).(*asking); ok {
		return a.answers
	}
	return nil
}

// take returns the answer to the next question of the call. question is its [Question.Digest]. ok
// is false if the question is not answered yet, or differs from the one that was answered.
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

// hasNextAnswer reports whether the next question of the call of ctx may have been answered.
func hasNextAnswer(ctx context.Context) bool {
	a, ok := ctx.Value(askingKey{}).(*asking)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next < len(a.answers)
}

// ErrNobodyToAsk is returned for a question outside of a call, or in a call whose caller does not
// support questions ([Call.Asks]).
var ErrNobodyToAsk = errors.New("tools: the caller does not support questions")
