package stream_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestAuditHasEachEntryOnce: an entry that several callers append, or that is appended again, is in
// the audit once, in the order of the first append.
func TestAuditHasEachEntryOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5 {
				if err := l.AppendAudit(ctx, runNamed("r1"), fmt.Sprintf("e%d", i), map[string]int{"n": i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := l.AppendAudit(ctx, runNamed("r2"), "e0", map[string]int{"n": 5}); err != nil {
		t.Fatal(err)
	}
	other := stream.Run{Thread: stream.Thread{Tenant: "other", ID: thread.ID}, ID: "r1"}
	if err := l.AppendAudit(ctx, other, "e9", map[string]int{"n": 9}); err != nil {
		t.Fatal(err)
	}
	var got []int
	for rec, err := range l.Audit(ctx, thread) {
		var entry struct{ N int }
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Result(ctx, &entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.N)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("audit: got %v, want 0 to 5", got)
	}
	n := 0
	for _, err := range l.AuditAll(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("entries of all threads: got %d, want 7", n)
	}
}

// TestAuditIsHiddenFromReaders: audit records after a run's end are not shown to readers and do not
// change the thread.
func TestAuditIsHiddenFromReaders(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	s.begin(runNamed("r1"), user, "")
	s.after = s.writeFinishedAttempt(s.place("1/model"), resultWith(assistantMessage("m1", "Hello.")), textStart("m1"), textContent("m1", "Hello."), textEnd("m1"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r1"})
	follower := streamtest.Follow(t, l)
	shown := func() (events []string) {
		shownView := viewer(follower).Thread(thread, view.ThreadOptions{Generation: stream.Generation1})
		defer shownView.Close()
		for {
			frames, err := shownView.NextPast(ctx)
			if errors.Is(err, io.EOF) {
				return events
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				events = append(events, f.Cursor.String()+" "+string(f.Event))
			}
		}
	}
	before, saw := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)), shown()
	if err := l.AppendAudit(ctx, runNamed("r1"), "e", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	after := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if after.Seq <= before.Seq || len(after.Entries) != len(before.Entries) || !after.Sealed {
		t.Errorf("snapshot: got %+v, want %+v", after, before)
	}
	if sees := shown(); len(saw) == 0 || !slices.Equal(saw, sees) {
		t.Errorf("events with the audit: got\n%q\nwant\n%q", sees, saw)
	}
}
