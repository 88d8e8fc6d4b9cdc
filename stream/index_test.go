package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// indexEntries returns the entries of the index, by thread.
func indexEntries(t *testing.T, ctx context.Context, l *stream.Log) map[string]stream.IndexEntry {
	t.Helper()
	keys, err := l.Index().Keys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]stream.IndexEntry{}
	for _, key := range keys {
		if !strings.HasPrefix(key, stream.IndexPrefix) {
			continue
		}
		var entry stream.IndexEntry
		if err := json.Unmarshal(must[jetstream.KeyValueEntry](t)(l.Index().Get(ctx, key)).Value(), &entry); err != nil {
			t.Fatal(err)
		}
		all[entry.ThreadID] = entry
	}
	return all
}

// TestIndexHasTheStatusOfThreads: the index has the status of each thread, also after a late write,
// and can be restored from the log.
func TestIndexHasTheStatusOfThreads(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	idle, failed, waiting, running, purged, fork := threadNamed("idle"), threadNamed("failed"), threadNamed("waits for people"), threadNamed("runs"), threadNamed("gone"), threadNamed("fork")
	for _, in := range []struct {
		of  stream.Thread
		end agui.Event
	}{
		{purged, &agui.RunFinished{}},
		{idle, &agui.RunFinished{Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}},
		{failed, &agui.RunError{Code: "internal"}},
		{waiting, &agui.RunFinished{Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i", Reason: "tool_call"}}}}},
		{running, nil},
	} {
		p := stream.Place{Run: stream.Run{Thread: in.of, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
		opened := must[uint64](t)(snapshots(l).OpenRun(ctx, p, stream.Opening{Agent: "a", Continues: "r0"}))
		if in.end == nil {
			continue
		}
		if in.of == waiting { // its agent has handed off the thread
			p.Agent = "b"
		}
		if _, _, err := l.Seal(ctx, p, in.end); err != nil {
			t.Fatal(err)
		}
		if err := l.ListOpened(ctx, p.Run, "late", opened); err != nil { // a late write of a frozen attempt
			t.Fatal(err)
		}
	}
	if err := snapshots(l).Fork(ctx, stream.Run{Thread: purged, ID: "r"}, nil, fork, nil); err != nil {
		t.Fatal(err)
	}
	if err := snapshots(l).Purge(ctx, purged); err != nil {
		t.Fatal(err)
	}
	want := map[string]stream.IndexEntry{
		"idle":             {ThreadID: "idle", Agent: "a", RunID: "r", Status: stream.StatusIdle},
		"failed":           {ThreadID: "failed", Agent: "a", RunID: "r", Status: stream.StatusFailed},
		"waits for people": {ThreadID: "waits for people", Agent: "b", RunID: "r", Status: stream.StatusWaiting, WaitingFor: []stream.WaitKind{stream.WaitApproval}},
		"runs":             {ThreadID: "runs", Agent: "a", RunID: "r", Status: stream.StatusRunning},
		"fork":             {ThreadID: "fork", Agent: "a", Status: stream.StatusIdle, EntryContent: stream.EntryContent{Access: stream.Access{Owner: new(string)}}},
	}
	ignore := cmpopts.IgnoreFields(stream.IndexEntry{}, "Seq", "CreatedAt", "UpdatedAt")
	is := indexEntries(t, ctx, l)
	wantEqual(t, "entry of the purged thread: purged", is["gone"].Purged, true)
	delete(is, "gone")
	if diff := cmp.Diff(want, is, ignore); diff != "" {
		t.Fatalf("index (-want +got):\n%s", diff)
	}
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	if err := js.DeleteKeyValue(ctx, "PERDURE_threads"); err != nil {
		t.Fatal(err)
	}
	anew := must[*stream.Log](t)(stream.Open(ctx, l.Conn(), stream.Options{}))
	if err := anew.RestoreIndex(ctx); err != nil {
		t.Fatal(err)
	}
	restored := indexEntries(t, ctx, anew)
	if diff := cmp.Diff(want, restored, ignore); diff != "" {
		t.Errorf("restored index (-want +got):\n%s", diff)
	}
	for id, entry := range restored {
		if entry.Seq != is[id].Seq {
			t.Errorf("%s: got record %d, want %d", id, entry.Seq, is[id].Seq)
		}
	}
}

// TestIndexListsReusedThread: a purged thread is listed again after a new run begins.
func TestIndexListsReusedThread(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	appendRun(t, l, 1, "u1", "a1")
	for range 2 {
		if err := snapshots(l).Purge(ctx, thread); err != nil {
			t.Fatal(err)
		}
		if entry := indexEntries(t, ctx, l)[thread.ID]; !entry.Purged {
			t.Errorf("entry after the purge: got %+v, want it purged", entry)
		}
		appendRun(t, l, 1, "u1", "a1")
		if entry := indexEntries(t, ctx, l)[thread.ID]; entry.Purged || entry.Agent != "a" || entry.Status != stream.StatusIdle {
			t.Errorf("entry after a new run: got %+v, want an idle thread of a", entry)
		}
	}
}

func TestFindRun(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	appendRun(t, l, 1, "u1", "a1")
	appendRunTo(t, l, threadNamed("two"), 1, parseMessages("u1"), parseMessages("a1"))
	appendRunTo(t, l, stream.Thread{Tenant: "another", ID: "three"}, 1, parseMessages("u1"), parseMessages("a1"))
	appendRunTo(t, l, threadNamed("two"), 2, parseMessages("u2"), parseMessages("a2"))
	for run, want := range map[string]int{"run1": 2, "run2": 1, "run3": 0} {
		found := must[[]stream.Thread](t)(l.FindRun(ctx, thread.Tenant, run))
		mustEqual(t, fmt.Sprintf("number of threads with the run %s", run), len(found), want)
		if want == 1 && found[0] != threadNamed("two") {
			t.Errorf("threads with the run %s: got %v, want the thread two", run, found)
		}
	}
}

// TestRunsOfThread: a thread's snapshot has the beginning and the end of each run, and the usage
// of all.
func TestRunsOfThread(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	used := func(in, out int64) []agui.TokenUsage {
		return []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: &in, OutputTokens: &out}}
	}
	one := int64(1)
	for i, end := range []agui.Event{
		&agui.RunFinished{Usage: used(10, 1)},
		&agui.RunError{Code: "timeout", Usage: used(5, 2)},
		&agui.RunFinished{Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}, Usage: []agui.TokenUsage{{Provider: "p", Model: "other", InputTokens: &one}}},
		nil,
	} {
		p := stream.Place{Run: runNamed("r1").Segment(i + 1), Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
		must[uint64](t)(snapshots(l).OpenRun(ctx, p, stream.Opening{Agent: "a", Revision: "v", Continues: "r0"}))
		if end != nil {
			if _, _, err := l.Seal(ctx, p, end); err != nil {
				t.Fatal(err)
			}
		}
	}
	snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	ends := ""
	for i, n := range snap.Runs {
		ends += n.Outcome + n.Code + " "
		wantEqual(t, fmt.Sprintf("run %d: segment", i), n.Segment(), i+1)
		wantEqual(t, fmt.Sprintf("run %d: agent", i), n.Agent, "a")
		wantEqual(t, fmt.Sprintf("run %d: revision", i), n.Revision, "v")
		wantEqual(t, fmt.Sprintf("run %d has no begin", i), n.Began.IsZero(), false)
		wantEqual(t, fmt.Sprintf("run %d has no end", i), n.Ended.IsZero(), n.Outcome == "")
	}
	wantEqual(t, "ends of the runs", ends, "success errortimeout cancelled  ")
	wantEqual(t, "status of the thread", snap.Status(), stream.StatusRunning)
	wantEqual(t, "thread has no time of activity", snap.Active.IsZero(), false)
	mustEqual(t, "number of models in the usage", len(snap.Usage), 2)
	mustEqual(t, "input tokens", *snap.Usage[0].InputTokens, 15)
	mustEqual(t, "output tokens", *snap.Usage[0].OutputTokens, 3)
	if snap.Usage[1].OutputTokens != nil {
		t.Errorf("output tokens of the second model = %+v, want nil", snap.Usage[1].OutputTokens)
	}
}

// BenchmarkListRun measures the cost of the index for a run, with few and with many threads in the
// log.
func BenchmarkListRun(b *testing.B) {
	ctx, end := context.Background(), &agui.RunFinished{ThreadID: "t", RunID: "r"}
	for _, threads := range []int{10, 10_000} {
		l := streamtest.OpenOn(b, streamtest.Server(b))
		for i := range threads {
			if err := l.ListOpened(ctx, benchRun("old", i), "a", 1); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("listing/threads=%d", threads), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				run := benchRun("listed", i)
				if err := errors.Join(l.ListOpened(ctx, run, "a", 1), l.ListSealed(ctx, run, 2, end)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("whole/threads=%d", threads), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				p := stream.Place{Run: benchRun("whole", i), Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
				_, err := snapshots(l).OpenRun(ctx, p, stream.Opening{Agent: "a"})
				if err == nil {
					_, _, err = l.Seal(ctx, p, end)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchRun returns the i-th run of a thread.
func benchRun(name string, i int) stream.Run {
	return stream.Run{Thread: threadNamed(fmt.Sprintf("%s-%d", name, i)), ID: "r"}
}
