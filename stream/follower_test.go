package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// sequences reads a run through a tail to its end.
func sequences(ctx context.Context, tail *stream.Tail) ([]uint64, error) {
	var all []uint64
	for r, err := range tail.Past(ctx, 1) {
		if err != nil {
			return all, err
		}
		all = append(all, r.Seq)
		if r.Kind == stream.KindTerminal {
			return all, nil
		}
	}
	for {
		records, err := tail.Next(ctx, time.Minute)
		if err != nil || len(records) == 0 {
			return all, fmt.Errorf("%d records, then %w", len(all), errors.Join(err, errors.New("no more records")))
		}
		for _, r := range records {
			all = append(all, r.Seq)
			if r.Kind == stream.KindTerminal {
				return all, nil
			}
		}
	}
}

// TestReadersGetEachRecordOnce: readers that attach at any time, while all lanes of the
// run and other runs and threads are written to, get every record exactly once and in order.
func TestReadersGetEachRecordOnce(t *testing.T) {
	t.Parallel()
	const lanes, records, every = 6, 50, 6
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	must[uint64](t)(l.OpenStep(ctx, place("1/tools", 0), nil, &agui.StepStarted{StepName: "tools"}))

	type reading struct {
		seqs []uint64
		err  error
	}
	var (
		mu       sync.Mutex
		readings []reading
		readers  sync.WaitGroup
		writers  sync.WaitGroup
	)
	read := func() {
		tail := follower.Tail(run)
		readers.Go(func() {
			defer tail.Close()
			seqs, err := sequences(ctx, tail)
			mu.Lock()
			defer mu.Unlock()
			readings = append(readings, reading{seqs, err})
		})
	}
	write := func(r stream.Run, lane stream.Lane, progress func(i int)) {
		p := stream.Place{Run: r, Lane: lane, Execution: "e1"}
		for i := range records {
			p.Step = fmt.Sprint(i)
			seq, err := l.OpenStep(ctx, p, nil, textContent("m", p.Step))
			if err != nil {
				t.Error(err)
				return
			}
			p.After = seq
			progress(i)
		}
	}
	for i := range lanes {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			write(run, stream.LaneMain.Tool(i), func(int) {
				if r.IntN(every) == 0 {
					read()
				}
			})
		})
	}
	neighbor := stream.Run{Thread: thread, ID: "another run"}
	stranger := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "another thread"}, ID: run.ID}
	for _, r := range []stream.Run{neighbor, stranger} {
		writers.Go(func() { write(r, stream.LaneMain, func(int) {}) })
	}
	writers.Wait()
	after := must[uint64](t)(l.OpenStep(ctx, place("2/model", lastOf(t, l, stream.LaneMain)), nil, &agui.StepFinished{StepName: "tools"}))
	end, _, err := l.Seal(ctx, place("finish", after), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	read()
	readers.Wait()
	var want []uint64
	for _, r := range must[[]*stream.Record](t)(l.ReadTo(ctx, run, end)) {
		want = append(want, r.Seq)
	}
	t.Logf("%d records, %d readers", len(want), len(readings))
	for i, got := range readings {
		if diff := cmp.Diff(want, got.seqs); got.err != nil || diff != "" {
			t.Fatalf("reader %d: %v (-want +got):\n%s", i, got.err, diff)
		}
	}
}

// lastOf returns the sequence of the last record of a lane.
func lastOf(t *testing.T, l *stream.Log, lane stream.Lane) uint64 {
	t.Helper()
	var last uint64
	for _, r := range recordsOf(t, l) {
		if r.Lane == lane {
			last = r.Seq
		}
	}
	return last
}

// writeSteps writes a run of n steps, one record each.
func writeSteps(t *testing.T, ctx context.Context, l *stream.Log, n int, progress func(i int)) {
	t.Helper()
	after := must[uint64](t)(l.OpenStep(ctx, place("0", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l), ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	for i := range n {
		progress(i)
		after = must[uint64](t)(l.OpenStep(ctx, place(fmt.Sprint(i+1), after), nil, &agui.StepStarted{StepName: "s"}, &agui.StepFinished{StepName: "s"}))
	}
	if _, _, err := l.Seal(ctx, place("finish", after), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
}

// proposeInput writes the proposed record of the run's input.
func proposeInput(t *testing.T, ctx context.Context, l *stream.Log) uint64 {
	t.Helper()
	return must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{
		Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: user.ID, Message: &user}}},
	})).Seq
}

// TestSlowReaderGetsEverything: the follower does not wait for a slow reader. A slow reader gets
// the records that the follower has dropped from the log. After it catches up it reads from the
// follower again. It is shown the same events as a fast reader.
func TestSlowReaderGetsEverything(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	slow := viewer(follower).Run(run, view.Options{})
	defer slow.Close()
	var got []view.Frame
	writeSteps(t, ctx, l, 3500, func(i int) {
		if i%1200 == 100 { // each time it lags by more than the follower keeps, or by less, and takes one part
			got = append(got, must[[]view.Frame](t)(slow.Next(ctx, time.Minute))...)
		}
	})
	more, err := readOn(ctx, slow)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("slow reader: got %v after %d frames, want EOF", err, len(got)+len(more))
	}
	wantSameFrames(t, append(got, more...), readAll(t, ctx, follower, view.Options{}))
}

// TestSlowReaderAmongOtherRuns: a slow reader of one run gets that run's records, whatever other
// runs of the thread have written meanwhile.
func TestSlowReaderAmongOtherRuns(t *testing.T) {
	t.Parallel()
	const records = 1500
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	slow, silent := follower.Tail(run), follower.Tail(stream.Run{Thread: thread, ID: "silent"})
	defer slow.Close()
	defer silent.Close()
	other := stream.Place{Run: stream.Run{Thread: thread, ID: "other"}, Lane: stream.LaneMain, Execution: "e1"}
	var want []uint64
	var after uint64
	for i := range records {
		other.Step = fmt.Sprint(i)
		other.After = must[uint64](t)(l.OpenStep(ctx, other, nil, textContent("m", other.Step)))
		if i%100 == 0 {
			after = must[uint64](t)(l.OpenStep(ctx, place(fmt.Sprint(i), after), nil, textContent("m", "mine")))
			want = append(want, after)
		}
	}
	var got []uint64
	for len(got) < len(want) {
		for _, r := range must[[]*stream.Record](t)(slow.Next(ctx, time.Minute)) {
			got = append(got, r.Seq)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records of the slow reader (-want +got):\n%s", diff)
	}
	if found := must[[]*stream.Record](t)(silent.Next(ctx, time.Millisecond)); found != nil {
		t.Errorf("records of another run: got %d, want none", len(found))
	}
}

// TestSlowReaderOfPurgedThread: a reader that lags when its thread is purged gets ErrGone. It is
// not shown later records as a continuation.
func TestSlowReaderOfPurgedThread(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	tails := map[string]*stream.Tail{"steady": nil, "at once": nil, "after a new beginning": nil}
	for name := range tails {
		tails[name] = follower.Tail(run)
		defer tails[name].Close()
	}
	writeSteps(t, ctx, l, 1500, func(int) {})
	if _, err := sequences(ctx, tails["steady"]); err != nil { // the follower has received all records and has dropped the first ones
		t.Fatal(err)
	}
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	wantGone := func(name string) {
		t.Helper()
		if records, err := tails[name].Next(ctx, time.Minute); !errors.Is(err, stream.ErrGone) {
			t.Errorf("%s: got %d records and %v, want ErrGone", name, len(records), err)
		}
	}
	wantGone("at once")
	writeSteps(t, ctx, l, 1, func(int) {})
	wantGone("after a new beginning")
}

// TestReadersShareFollower: a reader that attaches to a run that its follower has received
// from the beginning is shown the events of the log, without another read of the log.
func TestReadersShareFollower(t *testing.T) {
	t.Parallel()
	const records = 40
	ctx, s := testContext(t), streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	follower, elsewhere := streamtest.Follow(t, l), streamtest.Follow(t, streamtest.OpenOn(t, s)) // elsewhere receives records on its own connection
	first := viewer(follower).Run(run, view.Options{})
	first.SkipPast() // it receives all records, and so does the follower
	defer first.Close()
	writeSteps(t, ctx, l, records, func(int) {})
	all, err := readOn(ctx, first)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for _, o := range []view.Options{{}, {Join: true}, {After: &all[10].Cursor}} {
		came := l.Conn().Stats().InMsgs
		shared := readAll(t, ctx, follower, o)
		if came = l.Conn().Stats().InMsgs - came; !o.Join && came > records/2 { // a heartbeat may be among them
			t.Errorf("%+v: got %d messages from the log, want the last record and the first", o, came)
		}
		wantSameFrames(t, shared, readAll(t, ctx, elsewhere, o))
	}
}

// TestRecordsForSlowReadersAreBoundedInBytes: the records that a follower keeps for slow readers
// are bounded in bytes as well as in number.
func TestRecordsForSlowReadersAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	const size, few = 32 << 10, 100 // few records are 3 MiB; twice as many are more than the follower keeps
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	tail := func() *stream.Tail {
		tail := follower.Tail(run)
		t.Cleanup(tail.Close)
		return tail
	}
	steady, later, slow := tail(), tail(), tail()
	read := func(tail *stream.Tail, n int) {
		for n > 0 {
			records := must[[]*stream.Record](t)(tail.Next(ctx, time.Minute))
			if len(records) == 0 {
				t.Fatalf("%d records are missing, want none", n)
			}
			n -= len(records)
		}
	}
	var after uint64
	write := func(from int) {
		for i := range few {
			after = must[uint64](t)(l.OpenStep(ctx, place(fmt.Sprint(from+i), after), nil, textContent("m", strings.Repeat("x", size))))
		}
		read(steady, few)
	}
	write(0)
	read(later, few)
	write(few)
	if records := must[[]*stream.Record](t)(slow.Next(ctx, time.Minute)); len(records) > stream.PartBytes/size {
		t.Errorf("slow reader: got %d records of %d bytes at once, want at most %d bytes", len(records), size, stream.PartBytes)
	} else {
		read(slow, 2*few-len(records))
	}
}

// wantSameFrames checks that frames have equal events and cursors.
func wantSameFrames(t *testing.T, got, want []view.Frame) {
	t.Helper()
	line := func(f view.Frame) string { return f.Cursor.String() + " " + string(f.Event) }
	if !slices.EqualFunc(got, want, func(a, b view.Frame) bool { return line(a) == line(b) }) {
		i := 0
		for i < len(got) && i < len(want) && line(got[i]) == line(want[i]) {
			i++
		}
		t.Fatalf("got %d frames, want %d; the first difference is at %d", len(got), len(want), i)
	}
}

// TestReadersAndWritersSurviveRestart: a server that restarts with its data interrupts readers
// and writers and loses no record. Both continue by themselves.
func TestReadersAndWritersSurviveRestart(t *testing.T) {
	t.Parallel()
	ctx, dir := testContext(t), t.TempDir()
	s := streamtest.ServerAt(t, dir)
	n := &flakyNetwork{server: s}
	l := n.dial(t, ctx)
	follower := streamtest.Follow(t, l)
	live := viewer(follower).Run(run, view.Options{})
	defer live.Close()
	var (
		got   []view.Frame
		ended = make(chan error, 1)
	)
	go func() {
		for {
			more, err := live.Next(ctx, time.Minute)
			if err != nil || more == nil {
				ended <- err
				return
			}
			got = append(got, more...)
		}
	}()
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l), ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	a := begin(t, ctx, l, place("1/model", 0))
	for i := range 300 {
		if i == 100 || i == 200 {
			s.Shutdown()
			s.WaitForShutdown()
		}
		if err := a.Emit(ctx, textContent("m", fmt.Sprint(i))); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if i == 100 || i == 200 {
			s = streamtest.ServerAt(t, dir)
			n.use(s)
		}
	}
	after := must[uint64](t)(a.Finish(ctx, &stream.Result{}))
	if _, _, err := l.Seal(ctx, place("finish", after), &agui.RunError{Message: "over"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Fatalf("reader: got %v after %d frames, want EOF", err, len(got))
	}
	wantSameFrames(t, got, readAll(t, ctx, follower, view.Options{}))
	if texts := len(got) - 2; texts != 300 {
		t.Errorf("texts: got %d, want 300", texts)
	}
}

// TestClosedConnectionEndsReaders: a follower without a connection ends its readers with
// ErrInterrupted, also readers that attach later.
func TestClosedConnectionEndsReaders(t *testing.T) {
	t.Parallel()
	ctx, n := testContext(t), &flakyNetwork{server: streamtest.Server(t)}
	l := n.dial(t, ctx)
	follower := streamtest.Follow(t, l)
	before := follower.Tail(run)
	defer before.Close()
	l.Conn().Close()
	if _, err := before.Next(ctx, time.Minute); !errors.Is(err, stream.ErrInterrupted) {
		t.Errorf("reader: got %v, want ErrInterrupted", err)
	}
	later := follower.Tail(run)
	defer later.Close()
	if _, err := later.Next(ctx, time.Minute); !errors.Is(err, stream.ErrInterrupted) {
		t.Errorf("later reader: got %v, want ErrInterrupted", err)
	}
}
