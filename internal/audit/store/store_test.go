package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// open returns the audit log of a log.
func open(t testing.TB, s *stream.Log) *Log {
	t.Helper()
	l, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newWriter returns a writer that is closed with the test.
func newWriter(t testing.TB, l *Log) *Writer {
	t.Helper()
	w, err := NewWriter(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// mustRecord records an entry with an action on a thread.
func mustRecord(t testing.TB, w *Writer, c Chain, action audit.Action, thread string) {
	t.Helper()
	e := audit.Entry{Action: action, Outcome: audit.Accepted, Actor: audit.ActorOf(auth.Principal{Tenant: "acme", Subject: "ann"}), Target: audit.Target{Thread: thread}}
	if err := w.Record(t.Context(), c, e); err != nil {
		t.Fatal(err)
	}
}

// all returns the entries of a chain that pass a filter, from as many pages as there are.
func all(t testing.TB, l *Log, c Chain, f Filter, limit int) []json.RawMessage {
	t.Helper()
	var list []json.RawMessage
	for {
		p, err := l.Page(t.Context(), c, f, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Entries) > limit {
			t.Fatalf("a page has %d entries, want at most %d", len(p.Entries), limit)
		}
		list = append(list, p.Entries...)
		if p.Next == 0 {
			return list
		}
		f.After = p.Next
	}
}

// verify returns the head of the entries of a chain, all of which must verify.
func verify(t testing.TB, entries []json.RawMessage) audit.Head {
	t.Helper()
	var v audit.Verifier
	for _, raw := range entries {
		if err := v.Verify(raw); err != nil {
			t.Fatal(err)
		}
	}
	return v.Head()
}

// TestWritersShareChain: entries of several processes, recorded concurrently, form one chain per
// tenant, without gaps and without entries of other tenants.
func TestWritersShareChain(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	const writers, callers, each = 3, 8, 20
	var wait sync.WaitGroup
	for i := range writers {
		w := newWriter(t, l)
		for j := range callers {
			wait.Go(func() {
				for k := range each {
					for _, tenant := range []string{"acme", "an id with blanks"} {
						e := audit.Entry{Action: audit.StartRun, Outcome: audit.Accepted, Target: audit.Target{Thread: fmt.Sprintf("%d-%d-%d", i, j, k)}, Details: map[string]string{"tenant": tenant}}
						if err := w.Record(t.Context(), OfTenant(tenant), e); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	wait.Wait()
	for _, tenant := range []string{"acme", "an id with blanks"} {
		entries := all(t, l, OfTenant(tenant), Filter{}, 77)
		if head := verify(t, entries); head.Number != writers*callers*each {
			t.Errorf("%s: the last entry is %d, want %d", tenant, head.Number, writers*callers*each)
		}
		threads := map[string]bool{}
		for _, raw := range entries {
			e, err := audit.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if threads[e.Thread] || e.Details["tenant"] != tenant {
				t.Fatalf("%s: the chain has %s twice, or an entry of another tenant: %s", tenant, e.Thread, raw)
			}
			threads[e.Thread] = true
		}
	}
}

// TestNewestPagesAreTheReverse: the pages of the newest entries have the same entries as those of the
// oldest, in reverse, whatever the filter and the size of a page, also after a part has expired.
func TestNewestPagesAreTheReverse(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	w := newWriter(t, l)
	for i := range 30 {
		mustRecord(t, w, Platform, audit.StartRun, fmt.Sprintf("t%d", i%3))
		mustRecord(t, w, OfTenant("acme"), audit.StartRun, "other")
	}
	middle, err := audit.Decode(all(t, l, Platform, Filter{}, 100)[14])
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for name, f := range map[string]Filter{"all": {}, "a thread": {Thread: "t1"}, "since": {Since: middle.Time}, "until": {Until: middle.Time}, "none": {Thread: "unknown"}} {
			want := all(t, l, Platform, f, 100)
			slices.Reverse(want)
			for _, limit := range []int{1, 4, 15, 30, 100} {
				var got []json.RawMessage
				for f := f; ; {
					p, err := l.NewestPage(t.Context(), Platform, f, limit)
					if err != nil {
						t.Fatal(err)
					}
					if len(p.Entries) > limit {
						t.Fatalf("%s: a page has %d entries, want at most %d", name, len(p.Entries), limit)
					}
					got = append(got, p.Entries...)
					if f.Before = p.Next; p.Next == 0 {
						break
					}
				}
				if !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
					t.Errorf("%s by %d: got %s, want %s", name, limit, got, want)
				}
			}
		}
		if err := l.entries.Purge(t.Context(), jetstream.WithPurgeSubject(l.subject(Platform)), jetstream.WithPurgeKeep(12)); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := l.NewestPage(t.Context(), OfTenant("empty"), Filter{}, 10); err != nil || len(p.Entries) != 0 || p.Next != 0 {
		t.Errorf("an empty chain: got %v, %v", p, err)
	}
}

// TestVerifierFindsEveryChange: whatever is changed in a chain, the verification fails at that
// place.
func TestVerifierFindsEveryChange(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	w := newWriter(t, l)
	for i := range 5 {
		mustRecord(t, w, Platform, audit.StartRun, fmt.Sprintf("t%d", i))
	}
	entries := all(t, l, Platform, Filter{}, 100)
	verify(t, entries[2:]) // earlier entries may have expired
	changes := map[string]struct {
		entries []json.RawMessage
		number  uint64
	}{
		"an entry is removed":         {[]json.RawMessage{entries[0], entries[1], entries[3]}, 3},
		"an entry is changed":         {[]json.RawMessage{entries[0], json.RawMessage(strings.Replace(string(entries[1]), "ann", "bob", 1)), entries[2]}, 3},
		"two are swapped":             {[]json.RawMessage{entries[0], entries[2], entries[1]}, 2},
		"one is inserted":             {[]json.RawMessage{entries[0], json.RawMessage(`{"number":2,"previous":"00"}`), entries[1]}, 2},
		"one is no JSON":              {[]json.RawMessage{entries[0], json.RawMessage(`{`)}, 2},
		"the first has a predecessor": {[]json.RawMessage{json.RawMessage(`{"number":1,"previous":"00"}`)}, 1},
	}
	for name, tt := range changes {
		var v audit.Verifier
		var err error
		for _, raw := range tt.entries {
			if err = v.Verify(raw); err != nil {
				break
			}
		}
		broken, ok := errors.AsType[*audit.BrokenError](err)
		if !ok || broken.Number != tt.number {
			t.Errorf("%s: got %v, want a broken chain at entry %d", name, err, tt.number)
		}
	}
}

func TestPageFilters(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	w := newWriter(t, l)
	acme := OfTenant("acme")
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for i := range 20 {
		w.now = func() time.Time { return began.Add(time.Duration(i) * time.Minute) } // the writer is idle
		mustRecord(t, w, acme, []audit.Action{audit.StartRun, audit.DeleteThread}[i%2], fmt.Sprintf("t%d", i%3))
		mustRecord(t, w, OfTenant("other"), audit.StartRun, "x")
	}
	for name, tt := range map[string]struct {
		filter Filter
		want   int
	}{
		"all":     {Filter{}, 20},
		"after":   {Filter{After: 15}, 5},
		"the end": {Filter{After: 20}, 0},
		"since":   {Filter{Since: began.Add(18 * time.Minute)}, 2},
		"until":   {Filter{Until: began.Add(3 * time.Minute)}, 3},
		"action":  {Filter{Action: audit.DeleteThread}, 10},
		"thread":  {Filter{Thread: "t1"}, 7},
		"subject": {Filter{Subject: "bob"}, 0},
		"outcome": {Filter{Outcome: audit.Denied}, 0},
	} {
		for _, limit := range []int{1, 3, 100} {
			if got := all(t, l, acme, tt.filter, limit); len(got) != tt.want {
				t.Errorf("%s, pages of %d: got %d entries, want %d", name, limit, len(got), tt.want)
			}
		}
	}
}

// TestExpiryKeepsChain: old entries expire, except those of a tenant with a legal hold, and the
// rest of the chain verifies. An entry names the digest of the last one that was removed.
func TestExpiryKeepsChain(t *testing.T) {
	t.Parallel()
	log := streamtest.Open(t)
	l := open(t, log)
	w := newWriter(t, l)
	holds, err := OpenHolds(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Hour)
	chains := []Chain{OfTenant("acme"), OfTenant("held tenant"), OfTenant("held-thread"), Platform, OfTenant("kept")}
	for i := range 10 {
		w.now = func() time.Time { return began.Add(time.Duration(i) * time.Minute) }
		for _, c := range chains {
			mustRecord(t, w, c, audit.StartRun, "t")
		}
	}
	w.now = time.Now
	for _, held := range []Held{{Tenant: "held tenant"}, {Tenant: "held-thread", Thread: "t 1"}} {
		if err := holds.Set(t.Context(), held, Hold{Reason: "case 7"}); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(c Chain) (time.Duration, string) {
		if c == OfTenant("kept") {
			return 0, ""
		}
		return time.Hour, "default"
	}
	expire := func(wantRemoved uint64) {
		t.Helper()
		removed, err := Expire(t.Context(), w, holds, keep, began.Add(time.Hour+4*time.Minute))
		if err != nil || removed != wantRemoved {
			t.Fatalf("got %d removed entries and error %v, want %d", removed, err, wantRemoved)
		}
	}
	expire(8)
	expire(0)
	for i, want := range []int{7, 10, 10, 7, 10} {
		entries := all(t, l, chains[i], Filter{}, 100)
		if len(entries) != want {
			t.Fatalf("chain %d: %d entries are left, want %d", i, len(entries), want)
		}
		verify(t, entries)
	}
	last, err := audit.Decode(all(t, l, OfTenant("acme"), Filter{}, 100)[6])
	if err != nil {
		t.Fatal(err)
	}
	if last.Action != audit.ExpireAudit || last.Details["through"] != "4" || last.Details["rule"] != "default" || len(last.Details["digest"]) != 64 {
		t.Errorf("the last entry is %+v, want one that tells that entries 1 to 4 have expired", last)
	}
	if err := holds.Release(t.Context(), Held{Tenant: "held tenant"}); err != nil {
		t.Fatal(err)
	}
	expire(4)
	if entries := all(t, l, chains[1], Filter{}, 100); len(entries) != 7 {
		t.Errorf("after the release %d entries are left, want 7", len(entries))
	}
}

func TestSingleEntriesCannotBeDeleted(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	w := newWriter(t, l)
	mustRecord(t, w, Platform, audit.StartRun, "t")
	if err := l.entries.DeleteMsg(t.Context(), 1); !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		t.Errorf("deletion of an entry: got %v, want %v", err, jetstream.ErrMsgDeleteUnsuccessful)
	}
}

func TestRecordAfterClose(t *testing.T) {
	t.Parallel()
	w := newWriter(t, open(t, streamtest.Open(t)))
	mustRecord(t, w, Platform, audit.StartRun, "t")
	w.Close()
	if err := w.Record(t.Context(), Platform, audit.Entry{Action: audit.StartRun}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}

// BenchmarkRecord measures an entry of one caller at a time, and of many callers.
func BenchmarkRecord(b *testing.B) {
	l := open(b, streamtest.Open(b))
	w := newWriter(b, l)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			mustRecord(b, w, Platform, audit.StartRun, "t")
		}
	})
	b.Run("64 at a time", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := w.Record(b.Context(), Platform, audit.Entry{Action: audit.StartRun}); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
