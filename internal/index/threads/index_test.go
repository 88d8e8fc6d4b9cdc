package threads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenantThreads = "shop"

var began = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// entry returns the n-th entry; the first is the oldest. Its runs cost n cents; the 8th has no cost.
func entry(n int) stream.IndexEntry {
	usage := stream.ThreadUsage{TotalTokens: 1}
	if n != 7 { // whose models have no price
		usage.Cost, usage.Currency = int64(n)*10_000, "USD"
	}
	return stream.IndexEntry{
		ThreadID: fmt.Sprintf("thread %d", n), Agent: []string{"support", "sales"}[n%2], RunID: "r",
		Status:    []stream.Status{stream.StatusIdle, stream.StatusRunning, stream.StatusWaiting}[n%3],
		UpdatedAt: began.Add(time.Duration(n) * time.Minute), Seq: uint64(n + 1), Usage: usage,
	}
}

// put writes an entry of a tenant's thread.
func put(t testing.TB, l *stream.Log, of string, e stream.IndexEntry) {
	t.Helper()
	value, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	key := stream.IndexPrefix + stream.IndexToken(stream.Token(of)+"."+stream.Token(e.ThreadID))
	if _, err := l.Index().Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// watch returns a current index.
func watch(t testing.TB, l *stream.Log) *threads.Index {
	t.Helper()
	x, err := threads.Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	return x
}

// pages lists all threads in pages of the given size.
func pages(t testing.TB, x *threads.Index, of string, f threads.Filter, limit int) []string {
	t.Helper()
	ids := []string{}
	for cursor := ""; ; {
		p, err := x.List(of, f, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range p.Items {
			ids = append(ids, it.ThreadID)
		}
		if len(p.Items) > limit || p.NextCursor != "" && len(p.Items) < limit {
			t.Fatalf("size of the page = %d, want %d", len(p.Items), limit)
		}
		if cursor = p.NextCursor; cursor == "" {
			return ids
		}
	}
}

func TestNewestThreadsAreListedFirst(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	for n := range 20 {
		put(t, l, tenantThreads, entry(n))
	}
	put(t, l, "another tenant", entry(99))
	x := watch(t, l)
	for what, f := range map[string]struct {
		threads.Filter
		want func(e stream.IndexEntry) bool
	}{
		"all":     {threads.Filter{}, func(stream.IndexEntry) bool { return true }},
		"agent":   {threads.Filter{Agent: "sales"}, func(e stream.IndexEntry) bool { return e.Agent == "sales" }},
		"status":  {threads.Filter{Status: stream.StatusWaiting}, func(e stream.IndexEntry) bool { return e.Status == stream.StatusWaiting }},
		"after":   {threads.Filter{After: entry(7).UpdatedAt}, func(e stream.IndexEntry) bool { return e.Seq > 8 }},
		"before":  {threads.Filter{Before: entry(7).UpdatedAt}, func(e stream.IndexEntry) bool { return e.Seq < 8 }},
		"cost":    {threads.Filter{MinCost: new(int64(40_000)), MaxCost: new(int64(90_000))}, func(e stream.IndexEntry) bool { return e.Seq >= 5 && e.Seq <= 10 && e.Seq != 8 }},
		"at most": {threads.Filter{MaxCost: new(int64(10_000))}, func(e stream.IndexEntry) bool { return e.Seq < 3 }},
		"nothing": {threads.Filter{Agent: "nobody"}, func(stream.IndexEntry) bool { return false }},
	} {
		want := []string{}
		for n := 19; n >= 0; n-- {
			if e := entry(n); f.want(e) {
				want = append(want, e.ThreadID)
			}
		}
		for _, limit := range []int{1, 3, 10, 500} {
			if got := pages(t, x, tenantThreads, f.Filter, limit); !slices.Equal(got, want) {
				t.Errorf("%s, %d a page: %q, want %q", what, limit, got, want)
			}
		}
	}
	if got := pages(t, x, "another tenant", threads.Filter{}, 10); len(got) != 1 {
		t.Errorf("threads of another tenant = %q, want its one", got)
	}
	for _, cursor := range []string{"x", "AAAA", "%", "MDAwMDAwMDAwMDAwLiE"} {
		if _, err := x.List(tenantThreads, threads.Filter{}, cursor, 1); !errors.Is(err, stream.ErrInvalidCursor) {
			t.Errorf("cursor %q: got %v, want %v", cursor, err, stream.ErrInvalidCursor)
		}
	}
}

// TestListChanges: a loaded list follows changes, and a listing contains an unchanged thread only
// once.
func TestListChanges(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	for n := range 4 {
		put(t, l, tenantThreads, entry(n))
	}
	x := watch(t, l)
	first, err := x.List(tenantThreads, threads.Filter{}, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	moved, gone := entry(0), entry(3)
	moved.UpdatedAt, moved.Seq = began.Add(time.Hour), 100
	gone.Purged = true
	put(t, l, tenantThreads, moved)
	put(t, l, tenantThreads, gone)
	put(t, l, tenantThreads, entry(5))
	await(t, x, []string{"thread 0", "thread 5", "thread 2", "thread 1"})
	rest, err := x.List(tenantThreads, threads.Filter{}, first.NextCursor, 10)
	if err != nil || len(rest.Items) != 1 || rest.Items[0].ThreadID != "thread 1" {
		t.Errorf("page after the first = %+v (%v), want thread 1", rest.Items, err)
	}
	if !x.Current() {
		t.Error("Current = false, want true")
	}
}

// await waits until the list has the wanted content.
func await(t *testing.T, x *threads.Index, want []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		got := pages(t, x, tenantThreads, threads.Filter{}, 500)
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("the list is %q, want %q", got, want)
		}
	}
}

// TestListHasEntriesOfLog: the list shows the entries that the log writes.
func TestListHasEntriesOfLog(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	x := watch(t, l)
	run := stream.Run{Thread: stream.Thread{Tenant: tenantThreads, ID: "a/long name"}, ID: "r"}
	p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if _, err := snapshot.NewStore(l).OpenRun(t.Context(), p, stream.Opening{Agent: "support", Continues: "r0"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Seal(t.Context(), p, &agui.RunFinished{}); err != nil {
		t.Fatal(err)
	}
	await(t, x, []string{"a/long name"})
	if err := snapshot.NewStore(l).Purge(t.Context(), run.Thread); err != nil {
		t.Fatal(err)
	}
	await(t, x, []string{})
}

func BenchmarkList(b *testing.B) {
	l := streamtest.Open(b)
	for n := range 10_000 {
		put(b, l, tenantThreads, entry(n))
	}
	x := watch(b, l)
	for _, f := range []threads.Filter{{}, {Agent: "nobody"}} {
		b.Run(fmt.Sprintf("agent %q", f.Agent), func(b *testing.B) {
			for b.Loop() {
				if _, err := x.List(tenantThreads, f, "", 100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestActiveThreadsOfOwner: an index counts the active threads of each owner, also after they have
// ended or changed their access.
func TestActiveThreadsOfOwner(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	owned := func(n int, owner string, status stream.Status) stream.IndexEntry {
		e := entry(n)
		e.Status, e.Access = status, stream.Access{Owner: &owner}
		return e
	}
	put(t, l, tenantThreads, owned(1, "ann", stream.StatusRunning))
	put(t, l, tenantThreads, owned(2, "ann", stream.StatusPaused))
	put(t, l, tenantThreads, owned(3, "ann", stream.StatusWaiting))
	put(t, l, tenantThreads, owned(4, "bob", stream.StatusRunning))
	put(t, l, "other", owned(5, "ann", stream.StatusRunning))
	x := watch(t, l)
	want := func(ann, bob int) {
		t.Helper()
		for late := time.After(10 * time.Second); ; {
			changed := x.Changed()
			a, b := x.ActiveOf(tenantThreads, "ann"), x.ActiveOf(tenantThreads, "bob")
			if a == ann && b == bob {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("active threads: got %d of ann and %d of bob, want %d and %d", a, b, ann, bob)
			}
		}
	}
	want(2, 1)
	put(t, l, tenantThreads, owned(1, "ann", stream.StatusIdle))
	put(t, l, tenantThreads, owned(2, "bob", stream.StatusPaused))
	want(0, 2)
	if n := x.ActiveOf("unknown", "ann"); n != 0 {
		t.Errorf("active threads of an unknown tenant = %d, want 0", n)
	}
}
