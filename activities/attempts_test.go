package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// TestUnavailableToolIsRepeated: a tool that is down is called up to its number of attempts. Then
// the model receives the error and continues.
func TestUnavailableToolIsRepeated(t *testing.T) {
	t.Parallel()
	away := &tools.UnavailableError{Text: "The shop is closed.", Err: errors.New("SECRET PROMPT")}
	for name, test := range map[string]struct {
		options     []tools.Option
		openAttempt int // the attempt that works; 0 = none
		wantCalls   int
		want        string
	}{
		"idempotent":             {[]tools.Option{tools.Idempotent()}, 3, 3, "open"},
		"idempotent, still down": {[]tools.Option{tools.Idempotent()}, 0, 3, "The shop is closed."},
		"as often as it says":    {[]tools.Option{tools.Idempotent(), tools.Attempts(5)}, 0, 5, "The shop is closed."},
		"once":                   {[]tools.Option{tools.Idempotent(), tools.Attempts(1)}, 2, 1, "The shop is closed."},
		"not idempotent":         {nil, 2, 1, "The shop is closed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			shop := tools.Func("shop", "sells", func(context.Context, pair) (string, error) {
				if calls++; calls == test.openAttempt {
					return "open", nil
				}
				return "", away
			}, test.options...)
			var sent string
			fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				if n == 1 {
					return callAnswer([3]string{"x", "shop", `{"a":1,"b":2}`})
				}
				sent = req.Messages[len(req.Messages)-1].Text()
				return textAnswer("done")
			}, shop)
			if _, result := fixture.run("buy"); result.Outcome != runs.OutcomeSuccess || calls != test.wantCalls || sent != test.want {
				t.Errorf("got %+v after %d calls and the result %q; want %d calls and %q", result, calls, sent, test.wantCalls, test.want)
			}
		})
	}
}

// failingTool is a tool whose calls fail without a reason for the model.
type failingTool struct{ calls *int }

func (failingTool) Spec() tools.Spec { return tools.Spec{Name: "broken"} }

func (b failingTool) Call(context.Context, tools.Call) (tools.Result, error) {
	*b.calls++
	return tools.Result{}, errors.New("SECRET PROMPT")
}

// TestInterruptedCallIsNotRepeated: a call that may have taken effect is not repeated if its
// tool is not idempotent.
func TestInterruptedCallIsNotRepeated(t *testing.T) {
	t.Parallel()
	var calls int
	var sent string
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"x", "broken", `{}`})
		}
		sent = req.Messages[len(req.Messages)-1].Text()
		return textAnswer("done")
	}, failingTool{&calls})
	_, result := fixture.run("go")
	if want := "The call failed without an answer. Whether it took effect is unknown."; result.Outcome != runs.OutcomeSuccess || calls != 1 || sent != want {
		t.Errorf("got %+v after %d calls and the result %q, want %q", result, calls, sent, want)
	}
}
