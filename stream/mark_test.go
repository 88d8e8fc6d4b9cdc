package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// countingBranch is a branch that increments a number in the state, concurrently with other
// branches.
type countingBranch struct {
	log   *stream.Log
	place stream.Place
}

// newCounter returns the i-th branch.
func newCounter(l *stream.Log, i int) *countingBranch {
	return &countingBranch{l, stream.Place{Run: run, Lane: stream.LaneMain.Subagent(i), Execution: "e1"}}
}

// begin begins the next step.
func (c *countingBranch) begin(ctx context.Context, n int) (*stream.Attempt, error) {
	c.place.Step = fmt.Sprintf("count/%d", n)
	a, done, err := c.log.Begin(ctx, c.place)
	if done != nil {
		err = errors.Join(err, fmt.Errorf("step %s is done", c.place.Step))
	}
	return a, err
}

// count adds one to the number in the state. stale is the number of conflicting changes meanwhile.
func (c *countingBranch) count(ctx context.Context, n int) (stale int, err error) {
	a, err := c.begin(ctx, n)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	for ; ; stale++ {
		found, err := snapshots(c.log).Latest(ctx, run.Thread, 0)
		if errors.Is(err, stream.ErrUnavailable) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return stale, err
		}
		seq, err := a.FinishIfUnchanged(ctx, found.Mark, &stream.Result{}, increment(numberIn(found)+1))
		if !errors.Is(err, stream.ErrStale) {
			c.place.After = seq
			return stale, err
		}
	}
}

// numberIn returns the number in the state.
func numberIn(r *snapshot.Snapshot) int {
	var state struct{ N int }
	_ = json.Unmarshal(r.State, &state)
	return state.N
}

// increment returns the event that sets the number.
func increment(n int) agui.Event {
	return &agui.StateDelta{Delta: json.RawMessage(fmt.Sprintf(`[{"op":"add","path":"/n","value":%d}]`, n))}
}

// openRun begins the run that the counters belong to.
func openRun(t *testing.T, ctx context.Context, l *stream.Log) {
	t.Helper()
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l)}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
}

// TestStaleStateIsNotChanged: a change of a state that has changed meanwhile returns ErrStale and
// writes nothing. The attempt may try again.
func TestStaleStateIsNotChanged(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	openRun(t, ctx, l)
	left, right := newCounter(l, 0), newCounter(l, 1)
	first, second := must[*stream.Attempt](t)(left.begin(ctx, 1)), must[*stream.Attempt](t)(right.begin(ctx, 1))
	defer first.Close()
	defer second.Close()
	before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	must[uint64](t)(first.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, increment(1)))
	between := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if _, err := second.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, increment(1)); !errors.Is(err, stream.ErrStale) {
		t.Fatalf("FinishIfUnchanged with a stale state: got %v, want ErrStale", err)
	}
	if after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)); after.Seq != between.Seq || numberIn(after) != 1 {
		t.Errorf("state at %d: got %s, want the number 1 at %d", after.Seq, after.State, between.Seq)
	}
	must[uint64](t)(second.FinishIfUnchanged(ctx, between.Mark, &stream.Result{}, increment(2)))
	after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, fmt.Sprintf("state after mark %d: number in the state", after.Mark), numberIn(after), 2)
	if after.Mark == between.Mark {
		t.Errorf("mark after a change = %v, want another", after.Mark)
	}
	right.place.After = 0
	if _, done, err := l.Begin(ctx, right.place); done == nil || err != nil {
		t.Errorf("another attempt: got %v, %v, want the finished record", done, err)
	}
}

// TestChangeFollowsEmittedEvents: a step that has emitted events changes the state after them, also
// if its first snapshot was stale.
func TestChangeFollowsEmittedEvents(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	openRun(t, ctx, l)
	left, right := newCounter(l, 0), newCounter(l, 1)
	first, second := must[*stream.Attempt](t)(left.begin(ctx, 1)), must[*stream.Attempt](t)(right.begin(ctx, 1))
	defer first.Close()
	defer second.Close()
	before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if err := second.Emit(ctx, &agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/emitted","value":true}]`)}); err != nil {
		t.Fatal(err)
	}
	must[uint64](t)(first.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, increment(1)))
	if _, err := second.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, increment(1)); !errors.Is(err, stream.ErrStale) {
		t.Fatalf("FinishIfUnchanged with a stale state: got %v, want ErrStale", err)
	}
	between := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	large := &agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/large","value":"` + strings.Repeat("x", stream.MaxLine) + `"}]`)}
	must[uint64](t)(second.FinishIfUnchanged(ctx, between.Mark, &stream.Result{}, increment(2), large))
	after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, "number in the state", numberIn(after), 2)
	if !strings.Contains(string(after.State), `"emitted":true`) {
		t.Errorf("state: got %.200s, want the emitted member", after.State)
	}
}

// TestLargeStaleChange: events that exceed a record together are written with the change of the
// state, or not at all. The largest become blobs, so that the record keeps its bound.
func TestLargeStaleChange(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	openRun(t, ctx, l)
	left, right := newCounter(l, 0), newCounter(l, 1)
	first, second := must[*stream.Attempt](t)(left.begin(ctx, 1)), must[*stream.Attempt](t)(right.begin(ctx, 1))
	defer first.Close()
	defer second.Close()
	before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	must[uint64](t)(first.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, increment(1)))
	between := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	events := []agui.Event{increment(1)}
	for i := range 4 { // each fits into a record, all of them do not
		events = append(events, &agui.StateDelta{Delta: json.RawMessage(fmt.Sprintf(`[{"op":"add","path":"/large%d","value":%q}]`, i, strings.Repeat("x", stream.MaxLine-1000)))})
	}
	if _, err := second.FinishIfUnchanged(ctx, before.Mark, &stream.Result{}, events...); !errors.Is(err, stream.ErrStale) {
		t.Fatalf("FinishIfUnchanged with a stale state: got %v, want ErrStale", err)
	}
	if after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)); after.Seq != between.Seq {
		t.Errorf("record after a stale change: got %d, want %d", after.Seq, between.Seq)
	}
	events[0] = increment(2)
	seq := must[uint64](t)(second.FinishIfUnchanged(ctx, between.Mark, &stream.Result{}, events...))
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	messages := must[jetstream.Stream](t)(js.Stream(ctx, "PERDURE"))
	if size := len(must[*jetstream.RawStreamMsg](t)(messages.GetMsg(ctx, seq)).Data); size > stream.MaxFrame {
		t.Errorf("size of the record = %d bytes, want at most %d", size, stream.MaxFrame)
	}
	after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, "number in the state", numberIn(after), 2)
	for i := range 4 {
		if !strings.Contains(string(after.State), fmt.Sprintf(`"large%d"`, i)) {
			t.Errorf("state: got %.200s, want member large%d", after.State, i)
		}
	}
}

// TestChangesAreWrittenOnceAfterLoss: a change is written once, whether a publication or its
// acknowledgement is lost.
func TestChangesAreWrittenOnceAfterLoss(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]loss{"publication": thePublication, "acknowledgement": theAcknowledgement} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			n := &flakyNetwork{server: streamtest.Server(t)}
			l := n.dial(t, ctx)
			openRun(t, ctx, l)
			c := newCounter(l, 0)
			for i := range 5 {
				a := must[*stream.Attempt](t)(c.begin(ctx, i))
				found := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
				n.loseNext(lost)
				c.place.After = must[uint64](t)(a.FinishIfUnchanged(ctx, found.Mark, &stream.Result{}, increment(numberIn(found)+1)))
				a.Close()
			}
			n.awaitReconnect(t, l.Conn()) // a read on a connection that is cut fails
			end := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			wantEqual(t, fmt.Sprintf("state after %d losses: number in the state", n.losses()), numberIn(end), 5)
			wantEqual(t, "number of losses", n.losses(), 5)
		})
	}
}

// TestLateAttemptDoesNotChangeState: a late attempt that changes the state is fenced by its lane,
// even with a current snapshot.
func TestLateAttemptDoesNotChangeState(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	openRun(t, ctx, l)
	c := newCounter(l, 0)
	fenced := must[*stream.Attempt](t)(c.begin(ctx, 1))
	defer fenced.Close()
	if _, err := c.count(ctx, 1); err != nil {
		t.Fatal(err)
	}
	found := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if _, err := fenced.FinishIfUnchanged(ctx, found.Mark, &stream.Result{}, increment(7)); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("FinishIfUnchanged of the late attempt: got %v, want ErrFenced", err)
	}
	end := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, "number in the state at the end", numberIn(end), 1)
}

// TestChangesSurviveNodeFailures: counters on all nodes of a cluster run in parallel while its
// nodes die in turn. No count is lost.
func TestChangesSurviveNodeFailures(t *testing.T) {
	// Not in parallel: its nodes use what other tests need.
	const counters, each = 6, 20
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := startNodes(t)
	l := c.open(t, ctx, 0)
	openRun(t, ctx, l)
	var counting sync.WaitGroup
	half := make(chan struct{}, counters)
	for i := range counters {
		own := newCounter(c.open(t, ctx, i%len(c)), i)
		counting.Go(func() {
			for n := range each {
				if n == each/2 {
					half <- struct{}{}
				}
				if _, err := own.count(ctx, n); err != nil {
					t.Errorf("counter %d, %d: %v", i, n, err)
					return
				}
			}
		})
	}
	for kill := range 2 {
		<-half
		victim := (c.leader(t, ctx, l) + kill) % len(c)
		c[victim].kill()
		c[victim].start(t)
	}
	counting.Wait()
	end := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, fmt.Sprintf("%d counters with %d counts each: number in the state", counters, each), numberIn(end), counters*each)
}
