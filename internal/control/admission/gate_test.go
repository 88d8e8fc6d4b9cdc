package admission

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// openGates returns the gates of n workers with the same limits, on one log.
func openGates(t *testing.T, n int, limits Limits) []*Gate {
	t.Helper()
	server := streamtest.Server(t)
	var gates []*Gate
	for i := range n {
		g, err := Open(t.Context(), streamtest.OpenOn(t, server), string(rune('a'+i)), limits)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Stop)
		gates = append(gates, g)
	}
	return gates
}

// admit admits a call that must not wait.
func admit(t *testing.T, g *Gate) *Call {
	t.Helper()
	call, err := g.Admit(t.Context(), "p/m", Wait{Longest: 10 * time.Second, Begun: func() { t.Error("the call waits, want none that does") }})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// code returns the code of a model's error.
func code(err error) llm.Code {
	failure, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return ""
	}
	return failure.Code
}

// TestWorkersShareCalls: a call waits while the calls of all workers reach the limit, begins when one of
// them ends, and fails if it has waited for too long. A cancel ends the wait.
func TestWorkersShareCalls(t *testing.T) {
	t.Parallel()
	gates := openGates(t, 2, Limits{"p": {Calls: 2}})
	first, second := admit(t, gates[0]), admit(t, gates[1])
	waits := make(chan struct{})
	began := make(chan error, 1)
	var third *Call
	go func() {
		var err error
		third, err = gates[1].Admit(t.Context(), "p/m", Wait{Longest: time.Minute, Begun: func() { close(waits) }})
		began <- err
	}()
	<-waits
	if _, err := gates[0].Admit(t.Context(), "p/other", Wait{Longest: 10 * time.Millisecond}); code(err) != llm.CodeProviderBusy {
		t.Errorf("a fourth call: %v, want provider_busy", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(stream.ErrCancelled)
	if _, err := gates[0].Admit(cancelled, "p/m", Wait{Longest: time.Minute}); !errors.Is(err, stream.ErrCancelled) {
		t.Errorf("a cancelled call: %v, want the cause", err)
	}
	if _, err := gates[0].Admit(t.Context(), "q/m", Wait{}); err != nil {
		t.Errorf("a call of another provider: %v, want none", err)
	}
	first.End(nil)
	if err := <-began; err != nil {
		t.Fatalf("third call after the end of the first: %v", err)
	}
	second.End(nil)
	third.End(nil)
	admit(t, gates[0]).End(nil) // those that gave up have left
	admit(t, gates[1]).End(nil)
}

// TestLimitIsKept: many calls of several workers reach the limit, never exceed it, and all of them begin.
func TestLimitIsKept(t *testing.T) {
	t.Parallel()
	const limit, calls = 5, 60
	gates := openGates(t, 3, Limits{"p": {Calls: limit}})
	var mu sync.Mutex
	active, most := 0, 0
	reached := make(chan struct{}) // the first calls last until the limit is reached
	var wait sync.WaitGroup
	for i := range calls {
		wait.Go(func() {
			call, err := gates[i%3].Admit(t.Context(), "p/m", Wait{Longest: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			active++
			if active > most {
				most = active
				if most == limit {
					close(reached)
				}
			}
			mu.Unlock()
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Error("the calls do not reach the limit")
			}
			<-time.After(time.Duration(i%7) * time.Millisecond) // the call
			mu.Lock()
			active--
			mu.Unlock()
			call.End(nil)
		})
	}
	wait.Wait()
	if most != limit {
		t.Errorf("active calls at once = %d, want %d", most, limit)
	}
}

// TestRateIsShared: the calls of two workers begin at the rate of both together.
func TestRateIsShared(t *testing.T) {
	t.Parallel()
	gates := openGates(t, 2, Limits{"p": {PerMinute: 1200}}) // 20 at once, then one each 50 ms
	began := time.Now()
	for i := range 30 {
		call, err := gates[i%2].Admit(t.Context(), "p/m", Wait{Longest: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		call.End(nil)
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("30 calls took %s, want at least 10 intervals of 50 ms, less what the first 20 took", took)
	}
}

// TestRetryAfterIsShared: after a 429 with Retry-After no worker calls this model before that time. Other
// models of the provider are called, and errors without a Retry-After change nothing.
func TestRetryAfterIsShared(t *testing.T) {
	t.Parallel()
	gates := openGates(t, 2, nil)
	admit(t, gates[0]).End(&llm.Error{Code: llm.CodeRateLimited})
	admit(t, gates[0]).End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute})
	for i, g := range gates {
		deadline := time.Now().Add(10 * time.Second)
		var err error
		for err == nil && time.Now().Before(deadline) { // the other worker learns of it by its watch
			_, err = g.Admit(t.Context(), "p/m", Wait{Longest: time.Second})
		}
		failure, ok := errors.AsType[*llm.Error](err)
		if !ok || failure.Code != llm.CodeProviderBusy || failure.RetryAfter < 50*time.Second || failure.RetryAfter > 61*time.Second || !strings.Contains(failure.Reason, "Retry-After") {
			t.Errorf("worker %d: %v, want provider_busy for about a minute", i, err)
		}
		if _, err := g.Admit(t.Context(), "p/other", Wait{Longest: time.Second}); err != nil {
			t.Errorf("worker %d, another model: %v", i, err)
		}
	}
}

// TestBriefPauseIsAwaited: a call at the end of a pause waits for it.
func TestBriefPauseIsAwaited(t *testing.T) {
	t.Parallel()
	g := openGates(t, 1, nil)[0]
	began := time.Now()
	admit(t, g).End(&llm.Error{Code: llm.CodeUnavailable, RetryAfter: 300 * time.Millisecond})
	admit(t, g)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the second call began after %s, want 300 ms", took)
	}
}

// TestStopGivesCallsBack: the calls of a worker that stops do not count any more.
func TestStopGivesCallsBack(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	limits := Limits{"p": {Calls: 1}}
	stopped, err := Open(t.Context(), streamtest.OpenOn(t, server), "stopped", limits)
	if err != nil {
		t.Fatal(err)
	}
	admit(t, stopped)
	stopped.Stop()
	other, err := Open(t.Context(), streamtest.OpenOn(t, server), "other", limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	admit(t, other)
}

// TestCallEndsDuringOutage: a call that ends while another write takes all of its time does not count any
// more once the bucket answers again.
func TestCallEndsDuringOutage(t *testing.T) {
	t.Parallel()
	g := openGates(t, 1, Limits{"p": {Calls: 1}})[0]
	call := admit(t, g)
	<-call.provider.writer // a write that the bucket does not answer
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := call.provider.end(late); err == nil {
		t.Fatal("the end was written, want the error of a write that came too late")
	}
	call.provider.writer <- struct{}{}
	if err := call.provider.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	admit(t, g).End(nil)
}
