package stream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// runWithList writes a run whose client sends a message list, and returns the thread's snapshot
// after it.
func runWithList(t *testing.T, l *stream.Log, run stream.Run, c snapshot.Claim, answered ...agui.Message) *snapshot.Snapshot {
	t.Helper()
	ctx := testContext(t)
	before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, run.Thread, 0))
	p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{Accepted: before.Accept(c)}))
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	must[uint64](t)(snapshots(l).OpenRun(ctx, place, stream.Opening{Agent: "a", Input: p.Seq}))
	place.After = must[uint64](t)(begin(t, ctx, l, place).Finish(ctx, &stream.Result{Messages: answered}))
	if _, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: run.Thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	return must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, run.Thread, 0))
}

// TestSupersededMessagesOfRuns: messages that an edit removes from a conversation are listed with
// the run of the edit. The previous run can be forked to continue with them.
func TestSupersededMessagesOfRuns(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	ctx := testContext(t)
	runs := []stream.Run{{}, {Thread: thread, ID: "run1"}, {Thread: thread, ID: "run2"}, {Thread: thread, ID: "run3"}, {Thread: thread, ID: "run4"}}
	runWithList(t, l, runs[1], snapshot.Claim{Messages: parseMessages("s1 u1")}, parseMessages("r1 a1")...)
	runWithList(t, l, runs[2], snapshot.Claim{Messages: parseMessages("s1 u1 r1 a1 u2")}, parseMessages("a2")...)
	runWithList(t, l, runs[3], snapshot.Claim{Messages: parseMessages("s1=other u1 r1 a1 u2=better")}, parseMessages("a3")...)
	snap := runWithList(t, l, runs[4], snapshot.Claim{Messages: parseMessages("u1")}, parseMessages("a4")...)
	if got, want := conversationText(snap.Messages()), "s1=other u1 a4"; got != want {
		t.Errorf("conversation: got %s, want %s", got, want)
	}
	var got []string
	for _, n := range snap.Runs {
		if n.Superseded == nil {
			continue
		}
		superseded, err := snapshots(l).SupersededBy(ctx, thread, n.Superseded)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, n.ID+": number of superseded messages", len(superseded), n.Superseded.Messages)
		got = append(got, fmt.Sprintf("%s after %q: %s", n.ID, n.Superseded.After, conversationText(superseded)))
	}
	want := []string{`run3 after "": s1 u2 a2`, `run4 after "u1": r1 a1 u2=better a3`}
	if !slices.Equal(got, want) {
		t.Errorf("superseded: got %q, want %q", got, want)
	}

	fork := stream.Thread{Tenant: thread.Tenant, ID: "fork"}
	if err := snapshots(l).Fork(ctx, runs[3], nil, fork, nil); err != nil {
		t.Fatal(err)
	}
	forked := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, fork, 0))
	if got, want := conversationText(forked.Messages()), "s1=other u1 r1 a1 u2=better a3"; got != want {
		t.Errorf("fork: got %s, want %s", got, want)
	}
}

// TestEveryMessageIsKeptOrSuperseded: whatever lists clients send, each message is in the
// conversation or in the superseded messages.
func TestEveryMessageIsKeptOrSuperseded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			l := streamtest.Open(t)
			ctx := testContext(t)
			thread := stream.Thread{Tenant: "t", ID: "random"}
			known := map[string]bool{}
			var snap *snapshot.Snapshot
			var stale []agui.Message
			var staleSeen uint64
			for n := range 12 {
				var list []agui.Message
				if snap != nil {
					list = snap.Messages()
				}
				c := randomList(random, n, list, stale)
				if random.IntN(3) == 0 {
					c.Seen = staleSeen
				}
				if random.IntN(3) == 0 && snap != nil {
					stale, staleSeen = snap.Messages(), snap.Seq
				}
				added := parseMessage(fmt.Sprintf("a%d=answer_%d", n, n))
				snap = runWithList(t, l, stream.Run{Thread: thread, ID: fmt.Sprintf("run%d", n)}, c, added)
				for _, m := range snap.Messages() {
					known[conversationText([]agui.Message{m})] = true
				}
				wantAllMessagesKept(ctx, t, l, thread, snap, known)
				mustEqual(t, "test has failed", t.Failed(), false)
			}
		})
	}
}

// randomList returns a random list of a client: current, lost, outdated, trimmed, edited,
// shortened, with new IDs or new instructions, and usually with a new message.
func randomList(random *rand.Rand, n int, list, stale []agui.Message) snapshot.Claim {
	c := snapshot.Claim{History: []snapshot.History{"", "", "", "", "", snapshot.HistoryAuto, snapshot.HistoryAppend, snapshot.HistoryReplace}[random.IntN(8)]}
	list = slices.DeleteFunc(slices.Clone(list), func(m agui.Message) bool { return m.Role == agui.RoleReasoning && random.IntN(2) == 0 })
	switch random.IntN(8) {
	case 0:
		list = nil
	case 1:
		list = slices.Clone(stale)
	case 2:
		list = list[random.IntN(len(list)+1):]
	case 3:
		list = list[:random.IntN(len(list)+1)]
	case 4:
		if len(list) > 0 {
			i := random.IntN(len(list))
			list[i].Content = agui.TextContent(fmt.Sprint("edited ", n))
		}
	case 5:
		for i := range list {
			list[i].ID += fmt.Sprint("x", n)
		}
	}
	if random.IntN(4) == 0 {
		instruction := parseMessage(fmt.Sprintf("s%d=instruction_%d", n%3, n))
		list = slices.DeleteFunc(list, func(m agui.Message) bool { return m.ID == instruction.ID })
		list = append([]agui.Message{instruction}, list...)
	}
	if random.IntN(6) > 0 {
		list = append(list, parseMessage(fmt.Sprintf("u%d=%s", n, []string{"yes", fmt.Sprint("question_", n)}[random.IntN(2)])))
	}
	c.Messages = list
	return c
}

// wantAllMessagesKept checks that each known message is in the conversation or superseded.
func wantAllMessagesKept(ctx context.Context, t *testing.T, l *stream.Log, thread stream.Thread, snap *snapshot.Snapshot, known map[string]bool) {
	t.Helper()
	found := map[string]bool{}
	ids := map[string]bool{}
	for _, m := range snap.Messages() {
		found[conversationText([]agui.Message{m})] = true
		wantEqual(t, m.ID+" occurs twice", ids[m.ID], false)
		ids[m.ID] = true
	}
	for _, n := range snap.Runs {
		if n.Superseded == nil {
			continue
		}
		superseded, err := snapshots(l).SupersededBy(ctx, thread, n.Superseded)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range superseded {
			found[conversationText([]agui.Message{m})] = true
		}
	}
	for m := range known {
		wantEqual(t, m+" is kept or superseded", found[m], true)
	}
}
