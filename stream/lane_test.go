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
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

var (
	thread = stream.Thread{Tenant: "default", ID: "t/1 with.dots and *"}
	run    = stream.Run{Thread: thread, ID: "r1"}
)

// place returns a place of the main lane.
func place(step string, after uint64) stream.Place {
	return stream.Place{Run: run, Lane: stream.LaneMain, Step: step, Execution: "e1", After: after}
}

// textContent returns a part of a text message.
func textContent(id, s string) agui.Event { return &agui.TextMessageContent{MessageID: id, Delta: s} }

// testContext ends with the test. A test that hangs is reported by the timeout of go test, with all
// goroutines.
func testContext(t *testing.T) context.Context {
	t.Helper()
	return t.Context()
}

// must returns a function that ends the test on an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// begin begins an attempt of an unfinished step.
func begin(t *testing.T, ctx context.Context, l *stream.Log, p stream.Place) *stream.Attempt {
	t.Helper()
	a, done, err := l.Begin(ctx, p)
	if err != nil {
		t.Fatalf("begin %s: %v", p.Step, err)
	}
	if done != nil {
		t.Errorf("begin %s: done record = %+v, want nil", p.Step, done)
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
			seq, err := l.OpenStep(ctx, place("1/tools", 0), nil, &agui.StepStarted{StepName: "tools"})
			if err != nil {
				t.Error(err)
			}
			seqs[i] = seq
		})
	}
	wg.Wait()
	for _, seq := range seqs {
		mustEqual(t, "sequence of the repeated opening", seq, seqs[0])
	}
}

// TestLastEventsAreWrittenWithEnd: a reader is not shown a tool's result of a step that is not
// finished, because a snapshot would remove it.
func TestLastEventsAreWrittenWithEnd(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	for i := range 50 {
		p := stream.Place{Run: run, Lane: stream.LaneMain.Tool(0), Step: fmt.Sprint(i), Execution: "e1"}
		p.Run.ID = fmt.Sprint("r", i)
		a := begin(t, ctx, l, p)
		if err := a.Emit(ctx, &agui.Custom{Name: "before"}); err != nil {
			t.Fatal(err)
		}
		must[uint64](t)(a.Finish(ctx, &stream.Result{}, &agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: agui.TextContent("done")}))
		records := must[[]*stream.Record](t)(l.ReadTo(ctx, p.Run, 0))
		last := records[len(records)-1]
		events := must[[][]byte](t)(last.Events(ctx))
		mustEqual(t, "last record", last.Kind, stream.KindDone)
		if len(events) == 0 {
			t.Errorf("number of events = %v, want at least 1", len(events))
		}
		mustEqual(t, "type of the last event", agui.TypeOf(events[len(events)-1]), agui.EventToolCallResult)
	}
}

func TestFinishedStepAnswersItsRetry(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	a := begin(t, ctx, l, place("1/model", 0))
	if err := a.Emit(ctx, textContent("m", "hello")); err != nil {
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

func TestNewerAttemptFencesOlder(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	fenced := begin(t, ctx, l, place("1/model", 0))
	if err := fenced.Emit(ctx, textContent("m", "lost")); err != nil {
		t.Fatal(err)
	}
	newer := begin(t, ctx, l, place("1/model", 0))
	if !newer.FollowsUnfinished() {
		t.Error("Resumed of the newer attempt: got false, want true")
	}
	work, cancel := fenced.Context(ctx)
	defer cancel()
	if err := fenced.Emit(ctx, textContent("m", "late")); err != nil && !errors.Is(err, stream.ErrFenced) {
		t.Fatal(err)
	}
	<-work.Done()
	if cause := context.Cause(work); !errors.Is(cause, stream.ErrFenced) {
		t.Fatalf("context of the late attempt: got %v, want ErrFenced", cause)
	}
	if _, err := fenced.Finish(ctx, &stream.Result{}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("Finish of the late attempt: got %v, want ErrFenced", err)
	}
	if _, err := newer.Finish(ctx, &stream.Result{}); err != nil {
		t.Fatalf("the newer attempt: %v", err)
	}
}

func TestLateAttemptOfOldStep(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	first := must[uint64](t)(begin(t, ctx, l, place("1/model", 0)).Finish(ctx, &stream.Result{}))
	second := begin(t, ctx, l, place("2/model", first))
	if _, _, err := l.Begin(ctx, place("1/model", 0)); !errors.Is(err, stream.ErrOver) {
		t.Fatalf("late attempt of step 1: %v, want ErrOver", err)
	}
	if _, err := l.OpenStep(ctx, place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}); !errors.Is(err, stream.ErrFenced) {
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

// TestSupersededStepDoesNotBegin: a tool's lane is another subject than the run's end. The lane is
// superseded even before its step begins, so that no late attempt calls the tool after the run's
// end.
func TestSupersededStepDoesNotBegin(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	p := stream.Place{Run: run, Lane: stream.LaneMain.Tool(0), Step: "1/tools/0", Execution: "e1"}
	for range 2 { // a repeated end of the run supersedes again
		if err := l.Supersede(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.Begin(ctx, p); !errors.Is(err, stream.ErrOver) {
		t.Fatalf("late attempt: %v, want ErrOver", err)
	}
	if n := len(recordsOf(t, l)); n != 1 {
		t.Errorf("records of two Supersede calls: got %d, want 1", n)
	}
}

func TestFinishedStepIsNotSuperseded(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	must[uint64](t)(begin(t, ctx, l, place("1/model", 0)).Finish(ctx, &stream.Result{}))
	if err := l.SupersedeKeepingMessages(ctx, place("finish", 0)); err != nil {
		t.Fatal(err)
	}
	if r := recordsOf(t, l); r[len(r)-1].Kind != stream.KindDone {
		t.Errorf("last record of the lane: got %s, want done", r[len(r)-1].Kind)
	}
}

// TestTextOfSupersededAttemptIsKept: the text that is kept of a superseded attempt is exactly what
// readers were shown of it.
func TestTextOfSupersededAttemptIsKept(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l)}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	dead := begin(t, ctx, l, place("1/model", 0))
	for _, e := range []agui.Event{textStart("old"), textContent("old", "never")} {
		if err := dead.Emit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	a := begin(t, ctx, l, place("1/model", 0))
	attemptCtx, cancel := a.Context(ctx)
	defer cancel()
	tail := streamtest.Follow(t, l).Tail(run)
	defer tail.Close()
	speak := func(e agui.Event) { // waits until readers could read it
		if err := a.Emit(attemptCtx, e); err == nil {
			_, _ = tail.Next(attemptCtx, time.Minute)
		}
	}
	speak(textStart("m"))
	speak(textContent("m", "never "))
	spoken := make(chan struct{})
	go func() { // the attempt emits while it is superseded
		defer close(spoken)
		for i := 0; i < 200 && attemptCtx.Err() == nil; i++ {
			speak(textContent("m", fmt.Sprint(i, " ")))
		}
	}()
	if err := l.SupersedeKeepingMessages(ctx, place("finish", 0)); err != nil {
		t.Fatal(err)
	}
	<-spoken
	shown := ""
	for _, f := range readAllOf(t, ctx, streamtest.Follow(t, l), l) {
		if e, ok := must[agui.Event](t)(agui.Decode(f.Event)).(*agui.TextMessageContent); ok && e.MessageID == "m" {
			shown += e.Delta
		}
	}
	m := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)).Messages()
	mustEqual(t, "number of messages", len(m), 2)
	wantEqual(t, "text of the superseded attempt", m[1].Content.Text(), shown)
	if shown == "" {
		t.Error("shown text is empty, want a value")
	}
}

// readAllOf ends the run, and returns its frames.
func readAllOf(t *testing.T, ctx context.Context, f *stream.Follower, l *stream.Log) []view.Frame {
	t.Helper()
	if _, _, err := l.Seal(ctx, place("finish", 0), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	return readAll(t, ctx, f, view.Options{})
}

func TestMissingRecordIsLogLost(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	if _, _, err := l.Begin(ctx, place("2/model", 17)); !errors.Is(err, stream.ErrLogLost) {
		t.Fatalf("begin after a missing record: got %v, want ErrLogLost", err)
	}
	if _, err := snapshots(l).Latest(ctx, thread, 17); !errors.Is(err, stream.ErrLogLost) {
		t.Fatalf("snapshot at a missing record: got %v, want ErrLogLost", err)
	}
}

func TestSealFencesAllLanes(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	a := begin(t, ctx, l, place("1/model", 0))
	seq, earlier, err := l.Seal(ctx, place("end", 0), &agui.RunError{Message: "over", Code: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if earlier != nil {
		t.Errorf("seal = %+v, want nil", earlier)
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

// TestEventsArriveInOrder: a frame has all events since the last acknowledgement.
// Events that are emitted faster than the log acknowledges share a frame, in order, and none is
// dropped.
func TestEventsArriveInOrder(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), nil, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	a := begin(t, ctx, l, place("1/model", 0))
	const n = 3000
	big := string(make([]byte, 0)) + fmt.Sprintf("%0300000d", 7)
	for i := range n {
		s := fmt.Sprint(i)
		if i%1000 == 500 {
			s += big
		}
		if err := a.Emit(ctx, textContent("m", s)); err != nil {
			t.Fatal(err)
		}
	}
	seq := must[uint64](t)(a.Finish(ctx, &stream.Result{}))
	if _, _, err := l.Seal(ctx, place("end", seq), &agui.RunError{Message: "over"}); err != nil {
		t.Fatal(err)
	}
	frames := readAll(t, ctx, follower, view.Options{})
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
			t.Fatalf("event %d: got %.40q…, want %.40q…", i, e.Delta, want)
		}
		i++
	}
	mustEqual(t, "number of events", i, n)
}

func TestProposalIsOneRecord(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	in := &stream.Input{Input: agui.RunAgentInput{ThreadID: thread.ID, RunID: run.ID}}
	first := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
	again := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
	if first != again {
		t.Fatalf("proposals of the same input: got %v and %v, want one", first, again)
	}
	other := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{2}, in))
	if other.Seq == first.Seq {
		t.Errorf("sequence of another proposal = %v, want another", other.Seq)
	}
	in.LateDecisions = []stream.ResumeDecision{{InterruptID: "i"}}
	late := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
	mustEqual(t, "proposal with a late decision: digest", late.Digest, first.Digest)
	if late.Seq == first.Seq {
		t.Errorf("proposal with a late decision: Seq = %v, want another", late.Seq)
	}
	mustEqual(t, "number of late decisions", len(must[*stream.Input](t)(l.Input(ctx, late.Seq)).LateDecisions), 1)
}

func TestCancelRequestIsKeptOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	if wanted := must[bool](t)(l.CancelRequested(ctx, run)); wanted {
		t.Fatal("CancelRequested before any request = true, want false")
	}
	if first := must[bool](t)(l.RequestCancel(ctx, run, stream.Cancel{Reason: "stop"})); !first {
		t.Fatal("RequestCancel of the first request = repeated, want first")
	}
	if first := must[bool](t)(l.RequestCancel(ctx, run, stream.Cancel{Reason: "stop"})); first {
		t.Fatal("RequestCancel of the second request = first, want repeated")
	}
	if wanted := must[bool](t)(l.CancelRequested(ctx, run)); !wanted {
		t.Fatal("CancelRequested after a request = false, want true")
	}
}

// TestSealReadsNothing: if the lane ends with the record that the workflow knows, the terminal record
// takes one write, and no read of the lane.
func TestSealReadsNothing(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	last := must[uint64](t)(l.OpenStep(t.Context(), place("1", 0), nil, textContent("m", "said")))
	if err := l.ListOpened(t.Context(), run, "a", last); err != nil {
		t.Fatal(err)
	}
	end := &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}
	requests := streamtest.CountRequests(t, s)
	seq, _, err := l.Seal(t.Context(), place("end", last), end)
	if got := requests(); err != nil || seq != last+1 || got.Number("DIRECT.GET.PERDURE") != 0 || got.Number(l.LaneSubject(run, stream.LaneMain)) != 1 {
		t.Errorf("Seal = %d, %v with the requests %q, want record %d with one write", seq, err, got.Subjects(), last+1)
	}
	again, existing, err := l.Seal(t.Context(), place("end", last), end)
	if err != nil || again != seq || existing.Sequence() != seq {
		t.Errorf("Seal of the ended run = %d, %+v, %v, want record %d", again, existing, err, seq)
	}
	if _, _, err := l.Seal(t.Context(), place("end", seq+1), end); !errors.Is(err, stream.ErrLogLost) {
		t.Errorf("Seal after a record that the lane lacks: got %v, want ErrLogLost", err)
	}
}
