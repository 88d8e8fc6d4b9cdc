package stream_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// beginStep begins a step with one record.
func beginStep(t *testing.T, l *stream.Log, p stream.Place) (a *stream.Attempt, opened uint64) {
	t.Helper()
	a, opened, done, err := l.BeginStep(t.Context(), p, nil, &agui.StepStarted{StepName: p.Step})
	if err != nil || done != nil {
		t.Fatalf("begin %s: got %v, %v, want an attempt", p.Step, done, err)
	}
	t.Cleanup(a.Close)
	return a, opened
}

// TestBeginStep: the first attempt opens its step with its first record. Later attempts take the lane
// over, and know whether an earlier one has begun.
func TestBeginStep(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	before := must[uint64](t)(l.OpenStep(t.Context(), place("0", 0), nil, &agui.StepStarted{StepName: "0"}))
	first, opened := beginStep(t, l, place("1/model", before))
	mustEqual(t, "sequence of the begin record", opened, before+1)
	mustEqual(t, "first attempt: FollowsUnfinished", first.FollowsUnfinished(), false)
	second, opened := beginStep(t, l, place("1/model", before))
	mustEqual(t, "second attempt: sequence of the opening", opened, 0)
	mustEqual(t, "second attempt: FollowsUnfinished", second.FollowsUnfinished(), true)
	if _, err := first.Finish(t.Context(), &stream.Result{}); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("the first attempt finishes: got %v, want ErrFenced", err)
	}
	seq := must[uint64](t)(second.Finish(t.Context(), &stream.Result{}))
	third, _, done, err := l.BeginStep(t.Context(), place("1/model", before), nil)
	if err != nil || third != nil || done.Sequence() != seq {
		t.Errorf("third attempt: got %v, %v, %v, want record %d", third, done, err, seq)
	}
	if _, _, _, err := l.BeginStep(t.Context(), place("0", 0), nil); !errors.Is(err, stream.ErrOver) {
		t.Errorf("a late attempt of the step before: got %v, want ErrOver", err)
	}
	var kinds []stream.Kind
	for _, rec := range recordsOf(t, l) {
		kinds = append(kinds, rec.Kind)
	}
	mustEqual(t, "records", kinds, []stream.Kind{stream.KindOpen, stream.KindBegin, stream.KindAttempt, stream.KindDone})
}

// TestBeginStepAfterOpening: an opening without an attempt is not written again, and no attempt has
// begun.
func TestBeginStepAfterOpening(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	must[uint64](t)(l.OpenStep(t.Context(), place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}))
	a, _ := beginStep(t, l, place("1/model", 0))
	mustEqual(t, "FollowsUnfinished", a.FollowsUnfinished(), false)
	records := recordsOf(t, l)
	mustEqual(t, "number of records", len(records), 2)
	mustEqual(t, "last record", records[1].Kind, stream.KindAttempt)
}

// TestBeginStepOnUsedLane: the records of an earlier use of the lane precede the begin record.
func TestBeginStepOnUsedLane(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	p := stream.Place{Run: run, Lane: stream.LaneMain.Subagent(0), Step: "1/model", Execution: "e1"}
	used, _ := beginStep(t, l, p)
	p.Since = must[uint64](t)(used.Finish(t.Context(), &stream.Result{}))
	p.Step = "2/model"
	a, opened := beginStep(t, l, p)
	mustEqual(t, "sequence of the begin record", opened, p.Since+1)
	mustEqual(t, "FollowsUnfinished", a.FollowsUnfinished(), false)
}

// TestSupersedeAfterBegin: an attempt that has written only the begin record is fenced, and the end of
// the run may follow.
func TestSupersedeAfterBegin(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	a, opened := beginStep(t, l, place("1/model", 0))
	if err := l.Supersede(t.Context(), place("finish", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(t.Context(), &stream.Result{}); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("the attempt finishes: got %v, want ErrFenced", err)
	}
	seq, existing, err := l.Seal(t.Context(), place("finish", opened), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	if err != nil || existing != nil || seq != opened+2 {
		t.Errorf("Seal = %d, %v, %v, want record %d", seq, existing, err, opened+2)
	}
}

// TestSupersedeAfterBeginAndNote: an attempt without events has no messages to keep.
func TestSupersedeAfterBeginAndNote(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	a, _ := beginStep(t, l, place("1/model", 0))
	if err := a.Note("asked"); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.SupersedeKeepingMessages(t.Context(), place("finish", 0)); err != nil {
		t.Fatal(err)
	}
	records := recordsOf(t, l)
	last := records[len(records)-1]
	if last.Kind != stream.KindSupersede || last.HasResult() {
		t.Errorf("last record: got %s with a result = %t, want supersede without", last.Kind, last.HasResult())
	}
}

// TestBeginRun: the first record of a run opens it, begins an attempt, and lists the run, also if the
// attempt ends at once.
func TestBeginRun(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	store := snapshot.NewStore(l)
	o := stream.Opening{Agent: "a", Input: proposeInput(t, t.Context(), l)}
	for number, unfinished := range []bool{false, true} {
		a, _, err := store.BeginRun(t.Context(), place("1/model", 0), o, &agui.StepStarted{StepName: "model"})
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		mustEqual(t, "FollowsUnfinished", a.FollowsUnfinished(), unfinished)
		entry := must[*stream.IndexEntry](t)(l.Entry(t.Context(), thread))
		if entry == nil || entry.Agent != "a" || entry.Status != stream.StatusRunning || entry.Seq != o.Input+1 {
			t.Errorf("attempt %d: entry = %+v, want a running run of a at record %d", number+1, entry, o.Input+1)
		}
	}
	opening := must[*stream.Opening](t)(l.OpeningOf(t.Context(), run))
	if opening == nil || opening.RunID != run.ID || opening.Execution != "e1" {
		t.Errorf("OpeningOf = %+v, want that of the run", opening)
	}
	snap := must[*snapshot.Snapshot](t)(store.Latest(t.Context(), thread, 0))
	if snap.RunID != run.ID || snap.Sealed || snap.Opened != o.Input+1 {
		t.Errorf("snapshot = %+v, want the run open", snap.LastRun)
	}
}
