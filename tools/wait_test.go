package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
)

// waiting returns a tool that waits with a function, and the call that it waits in. again makes the call
// again with the answer.
func waiting(t *testing.T, wait func(context.Context) (string, error)) (raised *tools.Raised, again func(tools.Answer) tools.Result) {
	t.Helper()
	tool := tools.Func("w", "Waits.", func(ctx context.Context, _ struct{}) (string, error) { return wait(ctx) })
	_, err := tool.Call(t.Context(), tools.Call{Asks: true})
	if !errors.As(err, &raised) {
		t.Fatalf("first call: got %v, want a wait", err)
	}
	return raised, func(a tools.Answer) tools.Result {
		t.Helper()
		a.Question = raised.Digest()
		result, err := tool.Call(t.Context(), tools.Call{Asks: true, Answers: []tools.Answer{a}})
		if err != nil {
			t.Fatalf("second call: %v", err)
		}
		return result
	}
}

// TestSleep: a call that sleeps ends with a timer, and continues when it has ended, or is told that
// a caller has continued it early or ended it.
func TestSleep(t *testing.T) {
	t.Parallel()
	sleep := func(ctx context.Context) (string, error) {
		early, err := tools.Sleep(ctx, 3*time.Hour)
		if early {
			return "early", err
		}
		return "in time", err
	}
	raised, again := waiting(t, sleep)
	if raised.Wait == nil || raised.Wait.Event != nil || raised.ExpiresIn != 3*time.Hour || raised.Reason != tools.ReasonTimer {
		t.Errorf("wait = %+v, want a timer of 3 h", raised)
	}
	for status, want := range map[tools.AnswerStatus]string{tools.Expired: "in time", tools.Answered: "early"} {
		if got := again(tools.Answer{Status: status, Content: json.RawMessage("{}")}); got.IsError || got.Content != want {
			t.Errorf("%s: got %+v, want %q", status, got, want)
		}
	}
	if got := again(tools.Answer{Status: tools.Declined, Words: "not today"}); !got.IsError || got.Content != `The wait was ended early. Reason: "not today"` {
		t.Errorf("declined: got %+v", got)
	}
}

// TestSleepHasMinimum: a sleep of less than a second is refused. A sleep of no time would have no end.
func TestSleepHasMinimum(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, -time.Hour, time.Second - 1} {
		tool := tools.Func("w", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := tools.Sleep(ctx, d)
			if _, isInvalid := errors.AsType[*tools.QuestionError](err); !isInvalid {
				t.Errorf("sleep of %s: got %v, want a *QuestionError", d, err)
			}
			return "refused", nil
		})
		if _, err := tool.Call(t.Context(), tools.Call{Asks: true}); err != nil {
			t.Errorf("sleep of %s: call: %v", d, err)
		}
	}
}

// TestSleepUntil: a wait until a time ends exactly then. A time in the past is no wait, except in a call
// that has waited for it.
func TestSleepUntil(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(50 * time.Millisecond).Round(0)
	sleep := func(ctx context.Context) (string, error) {
		_, err := tools.SleepUntil(ctx, until)
		return "awake", err
	}
	raised, again := waiting(t, sleep)
	if !raised.ExpiresAt.Equal(until) || raised.ExpiresIn != 0 {
		t.Errorf("wait ends at %s (after %s), want %s", raised.ExpiresAt, raised.ExpiresIn, until)
	}
	<-time.After(time.Until(until))
	if got := again(tools.Answer{Status: tools.Expired}); got.IsError || got.Content != "awake" {
		t.Errorf("after the time: got %+v", got)
	}
	if early, err := tools.SleepUntil(t.Context(), until); early || err != nil {
		t.Errorf("time in the past: got %v, %v, want no wait", early, err)
	}
}

// TestAwaitEvent: a call that waits for an event gets it as the answer; without one, the error is for
// the model.
func TestAwaitEvent(t *testing.T) {
	t.Parallel()
	pattern := tools.EventPattern{Name: "paid", Match: map[string]any{"id": 7}}
	raised, again := waiting(t, func(ctx context.Context) (string, error) {
		event, err := tools.AwaitEvent(ctx, pattern, time.Hour)
		return string(event.Data), err
	})
	if raised.Wait == nil || raised.Wait.Event == nil || raised.Wait.Event.Name != "paid" || raised.ExpiresIn != time.Hour {
		t.Errorf("wait = %+v, want the event paid", raised)
	}
	if got := again(tools.Answer{Status: tools.Answered, Content: json.RawMessage(`{"id":"1","data":{"sum":5}}`)}); got.Content != `{"sum":5}` {
		t.Errorf("event: got %+v", got)
	}
	if got := again(tools.Answer{Status: tools.Expired}); !got.IsError || got.Content != "No such event arrived in time." {
		t.Errorf("timeout: got %+v", got)
	}
}

// TestInvalidPatterns: a pattern that exceeds its limits, or compares objects, is refused.
func TestInvalidPatterns(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range tools.MaxMatch + 1 {
		many[string(rune('a'+i))] = i
	}
	for name, pattern := range map[string]tools.EventPattern{
		"no name": {}, "an object": {Name: "a", Match: map[string]any{"x": map[string]any{}}}, "a list": {Name: "a", Match: map[string]any{"x": []any{1}}},
		"too many": {Name: "a", Match: many}, "long name": {Name: string(make([]byte, tools.MaxEventName+1))},
	} {
		var invalid *tools.QuestionError
		if _, err := tools.AwaitEvent(t.Context(), pattern, 0); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want a *QuestionError", name, err)
		}
	}
}
