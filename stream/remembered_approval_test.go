package stream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRememberedApprovals: every later run of a thread has the thread's remembered approvals, each
// once, also from a checkpoint.
func TestRememberedApprovals(t *testing.T) {
	t.Parallel()
	ctx, server := testContext(t), streamtest.Server(t)
	l := streamtest.OpenOn(t, server)
	refunds, orders := stream.Remembered{Tool: "refund", Rule: "1"}, stream.Remembered{Tool: "order", Rule: "1"}
	first := stream.Run{Thread: thread, ID: "r1"}
	place := stream.Place{Run: first, Lane: stream.LaneMain, Step: "0/tools/0", Execution: "e"}
	must[uint64](t)(l.OpenStep(ctx, place, stream.Opening{RunID: first.ID}, &agui.RunStarted{ThreadID: thread.ID, RunID: first.ID}))
	for i, remembered := range []*stream.Remembered{&refunds, nil, &refunds, &orders} {
		place.Step = fmt.Sprint("0/tools/", i)
		result := &stream.Result{
			Messages: []agui.Message{parseMessage(fmt.Sprintf("a%d=%s", i, strings.Repeat("x", 40<<10)))},
			Decided:  &stream.Decided{CallID: fmt.Sprint("c", i), Kind: "approve", Votes: []stream.Vote{{Digest: "d", Proposal: 1}}, Remembered: remembered},
		}
		place.After = must[uint64](t)(begin(t, ctx, l, place).Finish(ctx, result))
	}
	want := []stream.Remembered{refunds, orders}
	snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, place.After))
	wantEqual(t, "remembered approvals", snap.Remembered, want)
	wantEqual(t, "number of decided calls", len(snap.Decided), 4)
	if err := snapshots(l).FinalCheckpoint(ctx, thread, snap); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: thread.ID, RunID: first.ID}); err != nil {
		t.Fatal(err)
	}
	elsewhere := streamtest.OpenOn(t, server)
	later := must[*snapshot.Snapshot](t)(snapshots(elsewhere).Latest(ctx, thread, 0))
	if diff := cmp.Diff(want, later.Remembered); diff != "" {
		t.Errorf("remembered approvals on another node (-want +got):\n%s", diff)
	}
}
