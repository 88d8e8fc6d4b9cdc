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

type askingKey struct{}

// Ask asks people something in the middle of a call, and returns their answer.
//
// It does so by ending the call: the first time it returns an error that the tool must return in turn, wrapped or
// as it is. The run then waits, for days if need be, and costs nothing meanwhile. With the answer the tool is called
// anew, from its beginning and with the same arguments, and Ask returns the answer. A tool may ask several times,
// one after the other: a question is known by its place and by what it says, and one that says something else than
// the last time is asked anew, with those behind it.
//
// So whatever the tool does before it asks is done again, and what it reports is reported again. Ask first, act
// then; or use the call's [IdempotencyKey], which stays the same.
//
// If nobody is going to answer, the error is a *RefusedError, whose text a tool can leave to the model. It is a
// *QuestionError if the question is not acceptable or the answer is no T, and [ErrNobodyToAsk] outside of a call.
// A question without a schema gets that of T.
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

// Confirm asks people for a yes or a no: see [Ask]. Who declines to answer has said no.
func Confirm(ctx context.Context, message string) (bool, error) {
	answer, err := Ask[struct {
		Approved bool `json:"approved"`
	}](ctx, Question{Reason: ReasonConfirmation, Message: message})
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == Declined {
		return false, nil
	}
	return answer.Approved, err
}

// AskJSON is [Ask] for tools whose questions are not known before they are asked.
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

// Raise ends a call with a question, behind those that have answers. It is for tools that do not begin anew but go on
// from the [Answers] there are. It always fails: with an error that the tool must return, or a *QuestionError, or
// [ErrNobodyToAsk].
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

// Answers returns those that the questions of a call have got so far. A tool that keeps a state of its own finds in the
// last one where it was.
func Answers(ctx context.Context) []Answer {
	if a, ok := ctx.Value(askingKey{}).(*asking); ok {
		return a.answers
	}
	return nil
}

// take returns the answer to the next question of the call, if that has one.
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

// ErrNobodyToAsk is what questions come to outside of a call, or where whoever makes it asks nobody.
var ErrNobodyToAsk = errors.New("tools: there is nobody to ask")
