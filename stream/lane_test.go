package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

var (
	thread = stream.Thread{Tenant: "default", ID: "t/1 with.dots and *"}
	run    = stream.Run{Thread: thread, ID: "r1"}
)

func place(step string, after uint64) stream.Place {
	return stream.Place{Run: run, Lane: stream.LaneMain, Step: step, Execution: "e1", After: after}
}

func text(id, s string) agui.Event { return &agui.TextMessageContent{MessageID: id, Delta: s} }

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func begin(t *testing.T, ctx context.Context, l *stream.Log, p stream.Place) *stream.Attempt {
	t.Helper()
	a, done, err := l.Begin(ctx, p)
	if err != nil || done != nil {
		t.Fatalf("begin %s: attempt expected, got done %v, error %v", p.Step, done, err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestOpenIsWrittenOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	var wg sync.WaitGroup
	seqs := make([]uint64, 8)
	for i := range seqs {
		wg.Go(func() {
			seq, err := l.Open(ctx, place("1/tools", 0), nil, &agui.StepStarted{StepName: "tools"})
			if err != nil {
				t.Error(err)
			}
			seqs[i] = seq
		})
	}
	wg.Wait()
	for _, seq := range seqs {
		if seq != seqs[0] {
			t.Fatalf("attempts opened the step at different records: %v", seqs)
		}
	}
}

func TestFinishedStepAnswersItsRetry(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	a := begin(t, ctx, l, place("1/model", 0))
	if err := a.Emit(ctx, text("m", "hello")); err != nil {
		t.Fatal(err)
	}
	seq := must[uint64](t)(a.Finish(ctx, &stream.Result{Answer: json.RawMessage(`{"n":1}`)}, &agui.TextMessageEnd{MessageID: "m"}))

	_, done, err := l.Begin(ctx, place("1/model", 0))
	if err != nil || done == nil {
		t.Fatalf("retry: %v, %v; want the finished record", done, err)
	}
	var res stream.Result
	if err := done.Result(ctx, &res); err != nil || string(res.Answer) != `{"n":1}` || done.Seq != seq {
		t.Fatalf("retry found %s at %d (%v), want the result at %d", res.Answer, done.Seq, err, seq)
	}
}

func TestNewerAttemptFencesTheOlder(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	zombie := begin(t, ctx, l, place("1/model", 0))
	if err := zombie.Emit(ctx, text("m", "lost")); err != nil {
		t.Fatal(err)
	}
	newer := begin(t, ctx, l, place("1/model", 0))
	if !newer.Resumed() {
		t.Error("the newer attempt does not know that an older one had begun")
	}
	work, cancel := zombie.Context(ctx)
	defer cancel()
	if err := zombie.Emit(ctx, text("m", "late")); err != nil && !errors.Is(err, stream.ErrFenced) {
		t.Fatal(err)
	}
	<-work.Done()
	if cause := context.Cause(work); !errors.Is(cause, stream.ErrFenced) {
		t.Fatalf("the zombie's work ended with %v, want ErrFenced", cause)
	}
	if _, err := zombie.Finish(ctx, &stream.Result{}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("zombie finished: %v", err)
	}
	if _, err := newer.Finish(ctx, &stream.Result{}); err != nil {
		t.Fatalf("the newer attempt: %v", err)
	}
}

func TestLateAttemptOfAnOldStepChangesNothing(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	first := must[uint64](t)(begin(t, ctx, l, place("1/model", 0)).Finish(ctx, &stream.Result{}))
	second := begin(t, ctx, l, place("2/model", first))
	if _, _, err := l.Begin(ctx, place("1/model", 0)); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("late attempt of step 1: %v, want ErrFenced", err)
	}
	if _, err := l.Open(ctx, place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("late opening of step 1: %v, want ErrFenced", err)
	}
	if _, err := second.Finish(ctx, &stream.Result{}); err != nil {
		t.Fatalf("step 2 was disturbed: %v", err)
	}
}

func TestAnotherExecutionIsRefused(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	begin(t, ctx, l, place("1/model", 0))
	other := place("1/model", 0)
	other.Execution = "e2"
	if _, _, err := l.Begin(ctx, other); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("begin by another execution: %v, want ErrFenced", err)
	}
	if _, _, err := l.Seal(ctx, other, &agui.RunError{Message: "no"}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("seal by another execution: %v, want ErrFenced", err)
	}
}

func TestMissingRecordIsLogLost(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	if _, _, err := l.Begin(ctx, place("2/model", 17)); !errors.Is(err, stream.ErrLogLost) {
		t.Fatalf("begin behind a record that is not there: %v, want ErrLogLost", err)
	}
	if _, err := l.Reduce(ctx, thread, 17); !errors.Is(err, stream.ErrLogLost) {
		t.Fatalf("reduce: %v, want ErrLogLost", err)
	}
}

func TestSealStandsAndFencesEverything(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	a := begin(t, ctx, l, place("1/model", 0))
	seq, earlier, err := l.Seal(ctx, place("end", 0), &agui.RunError{Message: "over", Code: "x"})
	if err != nil || earlier != nil {
		t.Fatalf("seal: %v, %v", earlier, err)
	}
	again, earlier, err := l.Seal(ctx, place("end", 0), &agui.RunError{Message: "other", Code: "y"})
	if err != nil || earlier == nil || again != seq {
		t.Fatalf("second seal: %d, %v, %v; want the first record %d", again, earlier, err, seq)
	}
	if _, err := a.Finish(ctx, &stream.Result{}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("attempt after the seal: %v, want ErrFenced", err)
	}
	if _, _, err := l.Begin(ctx, place("1/model", 0)); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("begin after the seal: %v, want ErrFenced", err)
	}
}

// A frame has everything that gathered since the last acknowledgement: what is emitted faster than
// the log answers leaves together, in order, and nothing is dropped.
func TestEventsArriveInOrderWhateverTheirSize(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	must[uint64](t)(l.Open(ctx, place("1/model", 0), nil, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	a := begin(t, ctx, l, place("1/model", 0))
	const n = 3000
	big := string(make([]byte, 0)) + fmt.Sprintf("%0300000d", 7)
	for i := range n {
		s := fmt.Sprint(i)
		if i%1000 == 500 {
			s += big
		}
		if err := a.Emit(ctx, text("m", s)); err != nil {
			t.Fatal(err)
		}
	}
	seq := must[uint64](t)(a.Finish(ctx, &stream.Result{}))
	if _, _, err := l.Seal(ctx, place("end", seq), &agui.RunError{Message: "over"}); err != nil {
		t.Fatal(err)
	}
	frames := readAll(t, ctx, follower, stream.ViewOptions{})
	i := 0
	for _, f := range frames {
		if f.Type != agui.EventTextMessageContent {
			continue
		}
		var e struct{ Delta string }
		if err := json.Unmarshal(f.Event, &e); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(i)
		if i%1000 == 500 {
			want += big
		}
		if e.Delta != want {
			t.Fatalf("event %d is %.40q…, want %.40q…", i, e.Delta, want)
		}
		i++
	}
	if i != n {
		t.Fatalf("%d of %d events arrived", i, n)
	}
}

func TestProposalIsOneRecord(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	in := &stream.Input{Input: agui.RunAgentInput{ThreadID: thread.ID, RunID: run.ID}}
	first := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
	again := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
	if first != again {
		t.Fatalf("the same input is two proposals: %v and %v", first, again)
	}
	other := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{2}, in))
	if other.Seq == first.Seq {
		t.Fatal("another input is the same proposal")
	}
}

func TestCancelRequestIsKeptOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	if wanted := must[bool](t)(l.CancelRequested(ctx, run)); wanted {
		t.Fatal("cancelled before anyone asked")
	}
	if first := must[bool](t)(l.RequestCancel(ctx, run, "stop")); !first {
		t.Fatal("the first request is told to be a later one")
	}
	if first := must[bool](t)(l.RequestCancel(ctx, run, "stop")); first {
		t.Fatal("the second request is told to be the first")
	}
	if wanted := must[bool](t)(l.CancelRequested(ctx, run)); !wanted {
		t.Fatal("the request is lost")
	}
}
