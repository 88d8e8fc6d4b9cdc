package activities_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// openGate opens the gate of another worker on the log of the fixture.
func (f *fixture) openGate(limits admission.Limits) *admission.Gate {
	f.t.Helper()
	g, err := admission.Open(f.t.Context(), streamtest.OpenOn(f.t, f.server), "worker "+time.Now().String(), limits)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(g.Stop)
	return g
}

// TestRunWaitsForLimit: a model call waits until the call of another worker ends, and notes that it does.
func TestRunWaitsForLimit(t *testing.T) {
	t.Parallel()
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	limits := admission.Limits{"test": {Calls: 1}}
	other := f.openGate(limits)
	f.acts.Admission = f.openGate(limits)
	call, err := other.Admit(t.Context(), "test/m", admission.Wait{})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan bool, 1)
	go func() {
		noted := f.awaitWaitNote(t.Context())
		waited <- noted && f.calls.Load() == 0
		call.End(nil)
	}()
	if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("run = %+v, want a success", result)
	}
	wantEqual(t, "the call has noted that it waits, and was not made", <-waited, true)
	wantEqual(t, "model calls", f.calls.Load(), 1)
}

// awaitWaitNote waits until the log has the note of a call that waits.
func (f *fixture) awaitWaitNote(ctx context.Context) bool {
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		last, err := f.log.Last(ctx, f.log.LaneSubject(run, stream.LaneMain))
		if err != nil {
			return false
		}
		var note struct{ Waits, Free bool }
		if last != nil && last.Kind == stream.KindEvents && last.Result(ctx, &note) == nil && note.Waits {
			return note.Free
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
}

// TestRetryAfterHoldsOtherRuns: while a provider wants no calls, a run with one model makes none, and its
// attempts do not count as failures; a run with another model calls that one.
func TestRetryAfterHoldsOtherRuns(t *testing.T) {
	t.Parallel()
	for models, want := range map[string]string{"a/x": "x", "a/x, b/y": "y"} {
		f := setupChain(t, models, nil)
		f.acts.Admission = f.openGate(nil)
		other := f.openGate(nil)
		call, err := other.Admit(t.Context(), "a/x", admission.Wait{})
		if err != nil {
			t.Fatal(err)
		}
		const pause = 3 * time.Second
		ends := time.Now().Add(pause)
		call.End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: pause})
		poll := time.NewTicker(5 * time.Millisecond)
		for late := time.Now().Add(10 * time.Second); time.Now().Before(late); <-poll.C { // the other gate learns of it by its watch
			held, err := f.acts.Admission.Admit(t.Context(), "a/x", admission.Wait{})
			if err != nil {
				break
			}
			held.End(nil)
		}
		poll.Stop()
		// The environment of the test makes further attempts at once, up to 100. A call waits for the last
		// second of a pause itself.
		<-time.After(time.Until(ends.Add(-1100 * time.Millisecond)))
		if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
			t.Fatalf("%s: run = %+v, want a success", models, result)
		}
		wantEqual(t, models+": models that were called", strings.Join(f.called, " "), want)
		failures := f.reportedFailures()
		if len(failures) == 0 || failures[0].Code != runs.ErrorProviderBusy || failures[0].Final || !strings.Contains(failures[0].Message, "Retry-After") {
			t.Errorf("%s: failures = %+v, want provider_busy", models, failures)
		}
	}
}

// TestOpenCircuitFallsBack: while the circuit of a model is open, a run calls the next model at once, or
// ends after eight attempts without a call.
func TestOpenCircuitFallsBack(t *testing.T) {
	t.Parallel()
	for models, want := range map[string]string{"a/x": "", "a/x, b/y": "y"} {
		f := setupChain(t, models, nil)
		f.acts.Admission = f.openGate(nil)
		for range 10 {
			call, err := f.acts.Admission.Admit(t.Context(), "a/x", admission.Wait{})
			if err != nil {
				t.Fatal(err)
			}
			call.End(&llm.Error{Code: llm.CodeUnavailable})
		}
		_, result := f.run("hello")
		wantEqual(t, models+": models that were called", strings.Join(f.called, " "), want)
		if want == "" {
			wantEqual(t, models+": code", result.Code, string(llm.CodeCircuitOpen))
			wantEqual(t, models+": failures", len(f.reportedFailures()), 8)
		}
	}
}

// TestBusyAttemptsAreNoFailures: attempts that make no call because of a limit do not count, so that a run
// outlasts any number of them.
func TestBusyAttemptsAreNoFailures(t *testing.T) {
	t.Parallel()
	busy := 0
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	good := f.acts.Models["test"]
	f.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		if busy++; busy <= 20 {
			return func(yield func(llm.Chunk, error) bool) { yield(nil, &llm.Error{Code: llm.CodeProviderBusy}) }
		}
		return good.Stream(ctx, req)
	})
	_, result := f.run("hello")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "code of the workflows and of the models", runs.ErrorProviderBusy, string(llm.CodeProviderBusy))
}

// TestPanicEndsAdmission: a call that panics gives its place back, so that the next attempt may begin.
func TestPanicEndsAdmission(t *testing.T) {
	t.Parallel()
	f := setup(t, func(call int, _ *llm.Request) ([]llm.Chunk, error) {
		if call == 1 {
			panic("a defect of a model client")
		}
		return textAnswer("hi")
	})
	f.acts.Admission = f.openGate(admission.Limits{"test": {Calls: 1}})
	_, result := f.run("hello")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "failed attempts", len(f.reportedFailures()), 0)
}
