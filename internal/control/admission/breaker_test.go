package admission

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/llm"
)

// TestCircuit: after failures in a row calls fail at once; after a while a single call is made, and its
// outcome decides.
func TestCircuit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &breakers{byModel: map[string]*breaker{}, openTime: openTime}
		call := func(outcome error) error {
			report, err := b.allow("p/m")
			if err == nil {
				report(outcome)
			}
			return err
		}
		down := error(&llm.Error{Code: llm.CodeUnavailable})
		for range tripAfter - 1 {
			_ = call(down)
		}
		_ = call(nil) // the failures are not in a row
		for i := range tripAfter {
			if err := call(down); err != nil {
				t.Fatalf("call %d: %v, want it to be made", i, err)
			}
			_ = call(errUnknown) // a cancelled call changes nothing
		}
		err := call(nil)
		failure, ok := errors.AsType[*llm.Error](err)
		if !ok || failure.Code != llm.CodeCircuitOpen || !failure.Retryable() || failure.RetryAfter < openTime || failure.RetryAfter > openTime+time.Second {
			t.Fatalf("call after %d failures: %v, want circuit_open for %s", tripAfter, err, openTime)
		}
		if _, err := b.allow("p/other"); err != nil {
			t.Errorf("another model: %v, want it to be called", err)
		}
		opened := time.Now()
		wantCircuits(t, b, Circuit{"p/m", "open", opened})

		<-time.After(openTime + time.Millisecond)
		wantCircuits(t, b, Circuit{"p/m", "half-open", opened})
		probe, err := b.allow("p/m")
		if err != nil {
			t.Fatalf("call after the pause: %v, want it to be made", err)
		}
		if err := call(nil); code(err) != llm.CodeCircuitOpen {
			t.Errorf("a second call meanwhile: %v, want circuit_open", err)
		}
		probe(down)
		if err := call(nil); code(err) != llm.CodeCircuitOpen {
			t.Errorf("call after the probe has failed: %v, want circuit_open", err)
		}
		wantCircuits(t, b, Circuit{"p/m", "open", opened})

		<-time.After(openTime + time.Millisecond)
		if err := call(nil); err != nil {
			t.Fatalf("second probe: %v, want it to be made", err)
		}
		wantCircuits(t, b)
		for range 3 {
			if err := call(down); err != nil {
				t.Errorf("call after the probe has succeeded: %v, want it to be made", err)
			}
		}
		wantCircuits(t, b) // it counts failures, and is closed
		_ = call(nil)
		if len(b.byModel) != 0 {
			t.Errorf("breakers of models that answer = %d, want none", len(b.byModel))
		}
	})
}

// wantCircuits checks the circuits that are not closed.
func wantCircuits(t *testing.T, b *breakers, want ...Circuit) {
	t.Helper()
	if got := b.circuits(); !slices.Equal(got, want) {
		t.Errorf("circuits = %v, want %v", got, want)
	}
}

// TestOutcomes: only errors that tell of a broken model or provider count as failures.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "answers"},
		{&llm.Error{Code: llm.CodeUnavailable}, "fails"},
		{&llm.Error{Code: llm.CodeTimeout}, "fails"},
		{&llm.Error{Code: llm.CodeTruncated}, "fails"},
		{&llm.Error{Code: llm.CodeMalformedResponse}, "fails"},
		{&llm.Error{Code: llm.CodeRateLimited}, "answers"},
		{&llm.Error{Code: llm.CodeInvalidRequest}, "answers"},
		{&llm.Error{Code: llm.CodeUnauthorized}, "answers"},
		{context.Canceled, "unknown"},
	} {
		got := "fails"
		if o := outcome(c.err); o == nil {
			got = "answers"
		} else if errors.Is(o, errUnknown) {
			got = "unknown"
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestAnswerClosesCircuit: a call counts as answered with its first chunk, also if it fails later.
func TestAnswerClosesCircuit(t *testing.T) {
	t.Parallel()
	g := openGates(t, 1, nil)[0]
	broken := &llm.Error{Code: llm.CodeTruncated}
	for range 2 * tripAfter {
		call := admit(t, g)
		call.Answers()
		call.End(broken)
	}
	for range tripAfter {
		admit(t, g).End(broken)
	}
	if _, err := g.Admit(t.Context(), "p/m", Wait{}); code(err) != llm.CodeCircuitOpen {
		t.Errorf("call after failures without an answer: %v, want circuit_open", err)
	}
}
