package admission

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestState: other processes read the active and the waiting calls of all workers, and pauses with the
// names of their models.
func TestState(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	l := streamtest.OpenOn(t, server)
	if s := read(t, l); len(s.Pauses)+len(s.Uses) != 0 {
		t.Errorf("state before any call = %+v, want an empty one", s)
	}
	var gates []*Gate
	for _, worker := range []string{"a", "b"} {
		g, err := Open(t.Context(), streamtest.OpenOn(t, server), worker, Limits{"p": {Calls: 2}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Stop)
		gates = append(gates, g)
	}
	first := admit(t, gates[0])
	if s := read(t, l); !slices.Equal(s.Uses, []Use{{Provider: "p", Calls: 1}}) {
		t.Errorf("state during a call = %+v, want the call, and none that waits", s)
	}
	second := admit(t, gates[1])
	waits, admitted := make(chan struct{}), make(chan *Call, 1)
	go func() {
		call, err := gates[1].Admit(t.Context(), "p/m", Wait{Longest: time.Minute, Begun: func() { close(waits) }})
		if err != nil {
			t.Error(err)
		}
		admitted <- call
	}()
	<-waits
	awaitUses(t, l, Use{Provider: "p", Calls: 2, Waiting: 1})
	first.End(nil)
	third := <-admitted
	awaitUses(t, l, Use{Provider: "p", Calls: 2})
	second.End(nil)
	before := time.Now()
	third.End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute})
	awaitUses(t, l)

	other, err := gates[0].Admit(t.Context(), "q/gpt-4.1", Wait{})
	if err != nil {
		t.Fatal(err)
	}
	other.End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute})
	s := await(t, l, func(s State) bool { return len(s.Pauses) == 2 })
	for i, model := range []string{"p/m", "q/gpt-4.1"} {
		if p := s.Pauses[i]; p.Model != model || p.Until.Before(before.Add(time.Minute-time.Millisecond)) || p.Until.After(time.Now().Add(time.Minute)) {
			t.Errorf("pause %d = %+v, want one of %s for a minute", i, p, model)
		}
	}
}

// TestEndedState: pauses and leases that have ended count no more, nor do invalid values.
func TestEndedState(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1000)
	s := newState(map[string][]byte{
		"pause.p.m": []byte(`{"model":"p/m","until":1000}`), "pause.p.n": []byte(`1001`), "pause.p.o": []byte(`{"model":"p/o","until":1001}`),
		"limit.p": []byte(`{"workers":{"a":{"calls":1,"until":1000}}}`), "limit.q": []byte(`{"workers":{"a":{"calls":1,"until":1001,"waiting":3}}}`), "limit.r": []byte("x"),
	}, now)
	if !slices.Equal(s.Pauses, []Pause{{"p/o", time.UnixMilli(1001)}}) || !slices.Equal(s.Uses, []Use{{"q", 1, 3}}) {
		t.Errorf("state = %+v, want the pause of p/o and the calls of q", s)
	}
}

// read reads the state.
func read(t *testing.T, l *stream.Log) State {
	t.Helper()
	s, err := Read(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await reads the state until it has a property: workers write it after the end of calls.
func await(t *testing.T, l *stream.Log, has func(State) bool) State {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		s := read(t, l)
		if has(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("state = %+v, want another one", s)
		}
		<-time.After(10 * time.Millisecond) // poll interval
	}
}

// awaitUses waits until the workers have exactly the given calls.
func awaitUses(t *testing.T, l *stream.Log, want ...Use) {
	t.Helper()
	await(t, l, func(s State) bool { return slices.Equal(s.Uses, want) })
}

// TestStateWithoutLog: if the log does not answer, reading fails.
func TestStateWithoutLog(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	l := streamtest.OpenOn(t, server)
	server.Shutdown()
	if _, err := Read(t.Context(), l); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("Read without a server = %v, want %v", err, stream.ErrUnavailable)
	}
}
