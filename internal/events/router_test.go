package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// threads are the workflows of threads, as the router sees them: each has open waits, and takes the
// first decision about each.
type threads struct {
	mu       sync.Mutex
	open     map[string]bool     // calls that wait
	decided  map[string]string   // the digest that decided a call
	received map[string][]string // digests that a thread has received
}

func newThreads() *threads {
	return &threads{open: map[string]bool{}, decided: map[string]string{}, received: map[string][]string{}}
}

// decide implements Router.Decide.
func (s *threads) decide(_ context.Context, t stream.Thread, d runs.Decision) (runs.DecisionResult, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch earlier, isDecided := s.decided[d.CallID]; {
	case isDecided && earlier == d.Digest:
		return runs.DecisionResult{Recorded: &d}, true, nil
	case isDecided:
		return runs.DecisionResult{Error: runs.ErrorDecided}, true, nil
	case !s.open[d.CallID]:
		return runs.DecisionResult{Error: runs.ErrorUnknownCall}, true, nil
	}
	s.decided[d.CallID] = d.Digest
	s.received[t.ID] = append(s.received[t.ID], d.Digest)
	return runs.DecisionResult{}, true, nil
}

// isDecided implements Router.IsDecided.
func (s *threads) isDecided(_ context.Context, _ stream.Thread, d runs.Decision) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decided[d.CallID] == d.Digest, nil
}

func (s *threads) begin(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[call] = true
}

func (s *threads) decidedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.decided)
}

// router is a router of a worker on a store.
type router struct {
	*events.Router
	stop func()
}

// start starts a router; the test stops it at its end.
func start(t *testing.T, store *events.Store, s *threads) *router {
	t.Helper()
	r := newRouter(t, store, s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	r.stop = sync.OnceFunc(func() { cancel(); running.Wait(); r.Waits.Stop() })
	t.Cleanup(r.stop)
	return r
}

// newRouter returns a router that routes no events yet.
func newRouter(t *testing.T, store *events.Store, s *threads) *router {
	t.Helper()
	waits, err := store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &router{Router: events.NewRouter(store, waits)}
	r.Decide, r.IsDecided, r.OnError = s.decide, s.isDecided, func(err error) { t.Log(err) }
	return r
}

// open returns a store on a new server.
func open(t *testing.T) *events.Store {
	t.Helper()
	store, err := events.Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// newWait returns a wait of a thread for an event with a value.
func newWait(thread, call, value string) *events.Wait {
	return &events.Wait{
		ID: "int_" + call, Tenant: "shop", ThreadID: thread, RunID: "r", RunRef: "r", CallID: call, Number: 1, Kind: stream.WaitEvent,
		Event: "paid", Match: map[string]any{"order.id": value}, OpenedAt: time.Now(), Until: time.Now().Add(time.Hour),
	}
}

// newEvent returns an event with a value.
func newEvent(id, value string) *events.Event {
	return &events.Event{Tenant: "shop", Content: events.Content{ID: id, Source: "/s", Type: "paid", Data: json.RawMessage(fmt.Sprintf(`{"order":{"id":%q}}`, value))}}
}

// appendAll appends events that must be new.
func appendAll(t *testing.T, store *events.Store, all ...*events.Event) {
	t.Helper()
	for _, e := range all {
		if isNew, err := store.Append(t.Context(), e); !isNew || err != nil {
			t.Fatalf("Append = %v, %v, want a new event", isNew, err)
		}
	}
}

// register begins waits, as the notification about them does.
func (r *router) register(t *testing.T, s *threads, all ...*events.Wait) {
	t.Helper()
	for _, w := range all {
		s.begin(w.CallID)
		if err := r.Store.Register(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if err := r.FindKept(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
}

// await blocks until a condition holds.
func await(t *testing.T, what string, holds func() bool, state ...func() string) {
	t.Helper()
	for late := time.After(20 * time.Second); !holds(); {
		select {
		case <-late:
			for _, describe := range state {
				t.Log(describe())
			}
			t.Fatalf("timeout: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestEventEndsWaits: an event ends all waits that it matches, also of several threads, and no others:
// not those of other values, names or tenants.
func TestEventEndsWaits(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	r := start(t, store, s)
	other := newWait("t4", "d", "1")
	other.Tenant = "bank"
	named := newWait("t5", "e", "1")
	named.Event = "refunded"
	r.register(t, s, newWait("t1", "a", "1"), newWait("t2", "b", "1"), newWait("t3", "c", "2"), other, named)
	appendAll(t, store, newEvent("1", "1"))
	await(t, "two waits end", func() bool { return s.decidedCount() == 2 })
	appendAll(t, store, newEvent("2", "2"))
	await(t, "the third wait ends", func() bool { return s.decidedCount() == 3 })
	if s.decided["d"] != "" || s.decided["e"] != "" {
		t.Error("an event has ended a wait of another tenant, or for another name")
	}
}

// TestEarlyEventEndsWait: an event that arrives before the wait ends it at once, and a thread receives
// each event once, in the order of arrival.
func TestEarlyEventEndsWait(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	appendAll(t, store, newEvent("1", "1"), newEvent("2", "1"))
	r := newRouter(t, store, s)
	t.Cleanup(r.Waits.Stop)
	r.register(t, s, newWait("t1", "a", "1"), newWait("t1", "b", "1"), newWait("t1", "c", "1"))
	if s.decidedCount() != 2 || s.decided["c"] != "" || s.decided["a"] == s.decided["b"] {
		t.Fatalf("decided = %v, want a and b with different events", s.decided)
	}
	start(t, store, s)
	appendAll(t, store, newEvent("3", "1"))
	await(t, "the third wait ends", func() bool { return s.decidedCount() == 3 })
}

// TestClaimOfDeadAttempt: an attempt that dies after its claim does not keep the event from another wait
// of the thread, once its own wait has ended otherwise.
func TestClaimOfDeadAttempt(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	appendAll(t, store, newEvent("1", "1"))
	r := newRouter(t, store, s)
	t.Cleanup(r.Waits.Stop)
	first := newWait("t1", "a", "1")
	r.Decide = func(context.Context, stream.Thread, runs.Decision) (runs.DecisionResult, bool, error) {
		return runs.DecisionResult{}, false, errors.New("the worker has died")
	}
	if err := errors.Join(store.Register(t.Context(), first), r.FindKept(t.Context(), first)); err == nil {
		t.Fatal("FindKept succeeds, want the error of the attempt")
	}
	r.Decide = s.decide
	if err := store.Unregister(t.Context(), first); err != nil { // another event has ended it
		t.Fatal(err)
	}
	await(t, "the wait is gone", func() bool {
		return len(r.Waits.List("shop", func(*events.Wait) bool { return true })) == 0
	})
	r.register(t, s, newWait("t1", "b", "1"))
	if s.decided["b"] == "" {
		t.Error("the event has not ended the second wait")
	}
}

// TestEventAfterWait: a wait that was registered before an event is found by a router that has not
// received the wait from the bucket yet.
func TestEventAfterWait(t *testing.T) {
	t.Parallel()
	const count = 300
	store, s := open(t), newThreads()
	start(t, store, s)
	for i := range count {
		id := fmt.Sprint(i)
		w := newWait("t"+id, id, id)
		s.begin(w.CallID)
		if err := store.Register(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		appendAll(t, store, newEvent(id, id))
	}
	await(t, "all waits end", func() bool { return s.decidedCount() == count })
}

// TestKeptEventsOfEndedWait: a wait that has ended meanwhile is compared with no further event, and writes nothing
// more to its thread.
func TestKeptEventsOfEndedWait(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	appendAll(t, store, newEvent("1", "1"), newEvent("2", "1"), newEvent("3", "1"))
	r := newRouter(t, store, s)
	t.Cleanup(r.Waits.Stop)
	decisions := 0
	r.Decide = func(context.Context, stream.Thread, runs.Decision) (runs.DecisionResult, bool, error) {
		decisions++
		return runs.DecisionResult{Error: runs.ErrorUnknownCall}, true, nil
	}
	w := newWait("t1", "a", "1")
	if err := errors.Join(store.Register(t.Context(), w), r.FindKept(t.Context(), w)); err != nil {
		t.Fatal(err)
	}
	if decisions != 1 {
		t.Errorf("decisions = %d, want 1: the first one tells that the wait has ended", decisions)
	}
	if err := errors.Join(store.Register(t.Context(), w), r.FindKept(t.Context(), w)); err != nil { // a late attempt
		t.Fatal(err)
	}
	if decisions != 1 {
		t.Errorf("decisions after a late attempt = %d, want 1", decisions)
	}
}

// TestAbandonedScan: a wait that shares the scan of another one does not fail with it when the other one's
// caller is gone.
func TestAbandonedScan(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	appendAll(t, store, newEvent("1", "1"))
	r := newRouter(t, store, s)
	t.Cleanup(r.Waits.Stop)
	release := r.HoldScans()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1)}
	for i, call := range []string{"a", "b"} {
		w := newWait("t-"+call, call, "1")
		s.begin(call)
		if err := store.Register(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		own := ctx
		if call == "b" {
			own = t.Context()
		}
		go func() { ended[call] <- r.FindKept(own, w) }()
		await(t, "the wait joins the scan", func() bool { return r.Scanned("shop", "paid") == i+1 })
	}
	cancel()
	if err := <-ended["a"]; !errors.Is(err, context.Canceled) {
		t.Errorf("the first one: got %v, want %v", err, context.Canceled)
	}
	release()
	if err := <-ended["b"]; err != nil || s.decided["b"] == "" {
		t.Errorf("the second one: got %v and the decision %q, want the event", err, s.decided["b"])
	}
}

// TestRepeatedEvent: an event with the same source and ID is a repetition, whatever else it has.
func TestRepeatedEvent(t *testing.T) {
	t.Parallel()
	store := open(t)
	appendAll(t, store, newEvent("1", "1"))
	if isNew, err := store.Append(t.Context(), newEvent("1", "1")); isNew || err != nil {
		t.Errorf("Append again = %v, %v, want a repetition", isNew, err)
	}
	other := newEvent("1", "1")
	other.Source = "/other"
	appendAll(t, store, other)
	other = newEvent("1", "1")
	other.Tenant = "bank"
	appendAll(t, store, other)
}

// TestLargestEvent: an event with the largest data is stored and decided, whatever its characters.
func TestLargestEvent(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	r := start(t, store, s)
	w := newWait("t1", "a", "1")
	w.Match = nil
	r.register(t, s, w)
	e := newEvent("1", "1")
	e.Data = json.RawMessage(`"` + strings.Repeat("<", events.MaxEvent-2) + `"`)
	appendAll(t, store, e)
	await(t, "the wait ends", func() bool { return s.decidedCount() == 1 })
}

// TestExactNumber: a wait for a number above 2^53 ends with this number.
func TestExactNumber(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	r := start(t, store, s)
	const id = "12345678901234567"
	w := newWait("t1", "a", "1")
	w.Match = map[string]any{"id": json.Number(id)}
	r.register(t, s, w)
	e := newEvent("1", "1")
	e.Data = json.RawMessage(`{"id":` + id + `}`)
	appendAll(t, store, e)
	await(t, "the wait ends", func() bool { return s.decidedCount() == 1 })
}

// TestLateRegistration: an attempt to register a wait that has ended does not open it again.
func TestLateRegistration(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	r := start(t, store, s)
	w := newWait("t1", "a", "1")
	r.register(t, s, w)
	if err := store.Unregister(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := store.Register(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	next := newWait("t2", "b", "2")
	r.register(t, s, next)
	await(t, "only the other wait is listed", func() bool {
		list := r.Waits.List("shop", func(*events.Wait) bool { return true })
		return len(list) == 1 && list[0].ID == next.ID
	})
}

// TestEveryWaitGetsItsEvent: events and waits in random order, with repetitions and routers that stop
// and start, meet each other exactly once. Threads wait several times for the same value.
func TestEveryWaitGetsItsEvent(t *testing.T) {
	t.Parallel()
	const orders, each = 40, 3
	store, s := open(t), newThreads()
	routers := []*router{start(t, store, s), start(t, store, s)}
	var steps []func()
	for o := range orders {
		value := fmt.Sprint(o)
		for n := range each {
			e := newEvent(fmt.Sprintf("%d-%d", o, n), value)
			send := func() {
				again := *e
				if _, err := store.Append(t.Context(), &again); err != nil {
					t.Error(err)
				}
			}
			w := newWait("t"+value, fmt.Sprintf("%d-%d", o, n), value)
			wait := func() {
				s.begin(w.CallID)
				if err := store.Register(t.Context(), w); err != nil {
					t.Error(err)
				}
				if err := routers[0].FindKept(t.Context(), w); err != nil {
					t.Error(err)
				}
			}
			steps = append(steps, send, send, wait)
		}
	}
	rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	next := make(chan func())
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			for step := range next {
				step()
			}
		})
	}
	for i, step := range steps {
		if i == len(steps)/2 {
			routers[1].stop()
			routers[1] = start(t, store, s)
		}
		next <- step
	}
	close(next)
	working.Wait()
	await(t, "all waits end", func() bool { return s.decidedCount() == orders*each }, func() string {
		var left []string
		s.mu.Lock()
		defer s.mu.Unlock()
		for call := range s.open {
			if s.decided[call] == "" {
				left = append(left, call)
			}
		}
		return fmt.Sprintf("open: %v, received: %v", left, s.received["t"+strings.Split(left[0], "-")[0]])
	})
	for thread, received := range s.received {
		slices.Sort(received)
		if len(slices.Compact(received)) != each {
			t.Errorf("%s received %d different events, want %d", thread, len(slices.Compact(received)), each)
		}
	}
}

// TestDecisionOfDeadAttempt: an attempt dies after it has ended a wait, and before it has noted that. The
// log has no decision yet, because another wait of the turn is open. The event does not end that one, too.
func TestDecisionOfDeadAttempt(t *testing.T) {
	t.Parallel()
	store, s := open(t), newThreads()
	r := newRouter(t, store, s)
	t.Cleanup(r.Waits.Stop)
	first, second := newWait("t1", "a", "1"), newWait("t1", "b", "1")
	appendAll(t, store, newEvent("1", "1"))
	r.Decide = func(ctx context.Context, thread stream.Thread, d runs.Decision) (runs.DecisionResult, bool, error) {
		_, _, err := s.decide(ctx, thread, d)
		return runs.DecisionResult{}, false, errors.Join(err, errors.New("the worker has died"))
	}
	s.begin(first.CallID)
	if err := errors.Join(store.Register(t.Context(), first), r.FindKept(t.Context(), first)); err == nil {
		t.Fatal("FindKept succeeds, want the error of the attempt")
	}
	if err := store.Unregister(t.Context(), first); err != nil { // the notification that the wait has ended
		t.Fatal(err)
	}
	r.Decide = s.decide
	r.IsDecided = func(context.Context, stream.Thread, runs.Decision) (bool, error) { return false, nil }
	r.register(t, s, second)
	if len(s.received["t1"]) != 1 || s.decided["b"] != "" {
		t.Errorf("decided = %v, want the event for a only", s.decided)
	}
}
