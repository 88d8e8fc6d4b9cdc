package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The reasons of interrupts that wait for no person.
const (
	ReasonTimer = "perdure:timer"
	ReasonEvent = "perdure:event"
)

// SleepUntil waits until a time, like [Ask] waits for an answer: the call ends, and is made again
// from its beginning when the time has come. early tells that a caller continued the run before
// that. A time in the past is no wait.
//
// The time must be the same in all attempts of the call. For a duration, use [Sleep].
//
// While the call waits, the error ends the call: the tool must return it. It is a *WaitError if a caller has
// ended the wait, and [ErrNobodyToAsk] outside of a call.
func SleepUntil(ctx context.Context, until time.Time) (early bool, err error) {
	if !time.Now().Before(until) && !hasNextAnswer(ctx) {
		return false, nil
	}
	return sleep(ctx, "until "+until.Format(time.RFC3339), Question{ExpiresAt: until})
}

// Sleep waits for a duration, like [SleepUntil]. The error is a *QuestionError if the duration is less than a
// second; otherwise it is as that of SleepUntil.
func Sleep(ctx context.Context, d time.Duration) (early bool, err error) {
	if d < minExpiry {
		return false, &QuestionError{Reason: "a wait must last at least one second"}
	}
	return sleep(ctx, "for "+d.String(), Question{ExpiresIn: d})
}

// sleep asks the question of a timer, which has its end. what describes the wait, and identifies it in
// further attempts.
func sleep(ctx context.Context, what string, timer Question) (early bool, err error) {
	timer.Reason, timer.Message, timer.Wait = ReasonTimer, "Waits "+what+".", &Wait{}
	answer, err := AskJSON(ctx, timer)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if refused.Status == Expired {
			return false, nil
		}
		return false, &WaitError{Status: refused.Status, Words: refused.Words}
	}
	return err == nil && answer.Status == Answered, err
}

// AwaitEvent waits for an event, like [Ask] waits for an answer. Events that arrived before the call
// count if they are still kept, and the thread has not received them for an earlier wait. timeout is at
// least a second; 0 = as long as the definition of the agent allows.
//
// While the call waits, the error ends the call: the tool must return it. It is a *WaitError if the time is over
// or a caller has ended the wait, a *QuestionError if the pattern or the timeout is invalid or the answer is no
// event, and [ErrNobodyToAsk] outside of a call.
func AwaitEvent(ctx context.Context, pattern EventPattern, timeout time.Duration) (Event, error) {
	if err := pattern.validate(); err != nil {
		return Event{}, err
	}
	answer, err := AskJSON(ctx, Question{
		Reason: ReasonEvent, Message: pattern.describe(), ResponseSchema: eventSchema, ExpiresIn: timeout, Wait: &Wait{Event: &pattern},
	})
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return Event{}, &WaitError{Status: refused.Status, Words: refused.Words}
	}
	if err != nil {
		return Event{}, err
	}
	var event Event
	if err := json.Unmarshal(answer.Content, &event); err != nil {
		return event, &QuestionError{Reason: "the answer is not an event", Err: err}
	}
	return event, nil
}

// eventSchema is the schema of an event that a person gives instead of the awaited one.
var eventSchema = json.RawMessage(`{"type":"object","required":["data"],"properties":{"data":{"description":"The data of the event."},` +
	`"id":{"type":"string"},"source":{"type":"string"},"type":{"type":"string"},"subject":{"type":"string"},"time":{"type":"string"}}}`)

// validate returns a *QuestionError if the pattern exceeds its limits.
func (p EventPattern) validate() error {
	if p.Name == "" || len(p.Name) > MaxEventName {
		return &QuestionError{Reason: fmt.Sprintf("the name of the event must have 1 to %d bytes", MaxEventName)}
	}
	if len(p.Match) > MaxMatch {
		return &QuestionError{Reason: fmt.Sprintf("match must have at most %d members", MaxMatch)}
	}
	for path, value := range p.Match {
		switch value.(type) {
		case map[string]any, []any:
			return &QuestionError{Reason: fmt.Sprintf("match.%.64s must be a string, a number, a boolean or null", path)}
		}
		if encoded, err := json.Marshal(value); err != nil || len(encoded) > MaxMatchValue {
			return &QuestionError{Reason: fmt.Sprintf("match.%.64s must have at most %d bytes", path, MaxMatchValue)}
		}
	}
	return nil
}

// describe returns a text that people read, and that identifies the wait in further attempts.
func (p EventPattern) describe() string {
	text := "Waits for the event " + p.Name
	for i, path := range slices.Sorted(maps.Keys(p.Match)) {
		value, _ := json.Marshal(p.Match[path]) // validate has encoded it
		text += []string{", where ", " and "}[min(i, 1)] + path + " = " + string(value)
	}
	if len(text) >= MaxQuestion {
		text = strings.ToValidUTF8(text[:MaxQuestion-4], "") + "…"
	}
	return text + "."
}

// WaitError is the error of a wait that ends without what it waited for.
type WaitError struct {
	Status AnswerStatus // not Answered; Expired only of a wait for an event
	Words  string       // reason of the caller that ended it; can be empty
}

// Error returns a text for the model.
func (e *WaitError) Error() string {
	switch {
	case e.Status == Expired:
		return "No such event arrived in time."
	case e.Words != "":
		if words, err := json.Marshal(e.Words); err == nil {
			return "The wait was ended early. Reason: " + string(words)
		}
	}
	return "The wait was ended early."
}
