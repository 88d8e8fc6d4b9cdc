package stream_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// threadNamed returns a thread of the tests' tenant.
func threadNamed(id string) stream.Thread { return stream.Thread{Tenant: thread.Tenant, ID: id} }

// setupFork returns a log with two runs, and a fork of the first run.
func setupFork(t *testing.T) (*stream.Log, stream.Thread) {
	t.Helper()
	l, to := streamtest.Open(t), threadNamed("a fork")
	appendRun(t, l, 1, "u1", "r1 a1")
	appendRun(t, l, 2, "u1 a1 u2", "a2")
	if err := snapshots(l).Fork(testContext(t), runNamed("run1"), nil, to, nil); err != nil {
		t.Fatal(err)
	}
	return l, to
}

// wantConversation checks the messages of a thread.
func wantConversation(t *testing.T, what string, l *stream.Log, of stream.Thread, want string) {
	t.Helper()
	if got := conversationText(must[*snapshot.Snapshot](t)(snapshots(l).Latest(testContext(t), of, 0)).Messages()); got != want {
		t.Errorf("%s: got the messages %q, want %q", what, got, want)
	}
}

// TestForkContinuesFromParent: the first input of a fork is accepted like the input of any
// thread. A list without inherited messages only adds to them.
func TestForkContinuesFromParent(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"u1 a1 u3":       "u1 r1 a1 u3 a3", // a client with the whole history
		"u3":             "u1 r1 a1 u3 a3", // a client without the history
		"":               "u1 r1 a1 a3",
		"u1":             "u1 a3",       // regenerates
		"u1=other":       "u1=other a3", // edits
		"u1 a1 u2 a2 u3": "u1 r1 a1 u2 a2 u3 a3",
	} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			l, to := setupFork(t)
			wantConversation(t, "the fork", l, to, "u1 r1 a1")
			appendRunTo(t, l, to, 3, parseMessages(sent), parseMessages("a3"))
			wantConversation(t, "the fork", l, to, want)
			wantConversation(t, "the parent", l, thread, "u1 r1 a1 u2 a2")
		})
	}
}

// TestForkIsIndependent: changes of a fork and of its parent do not affect each other.
func TestForkIsIndependent(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l, to := setupFork(t)
	again := threadNamed("a fork of the fork")
	appendRunTo(t, l, to, 3, parseMessages("u1 a1 u3"), parseMessages("a3"))
	if err := snapshots(l).Fork(ctx, stream.Run{Thread: to, ID: "run3"}, nil, again, nil); err != nil {
		t.Fatal(err)
	}
	appendRun(t, l, 4, "u1=other", "a4")
	wantConversation(t, "the fork", l, to, "u1 r1 a1 u3 a3")
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if err := snapshots(l).Purge(ctx, to); err != nil {
		t.Fatal(err)
	}
	wantConversation(t, "the fork of the fork", l, again, "u1 r1 a1 u3 a3")
	snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, again, 0))
	if snap.Origin == nil {
		t.Fatal("origin of the fork = nil, want a value")
	}
	wantEqual(t, "origin: thread", snap.Origin.Thread, to.ID)
	wantEqual(t, "origin: run", snap.Origin.Run, "run3")
	wantEqual(t, "number of runs", len(snap.Runs), 0)
	wantEqual(t, "agent of the fork", snap.Agent(), "a")
}

// TestForkHasNoInterrupts: a fork has the messages and the state of its parent, and none of its
// interrupts.
func TestForkHasNoInterrupts(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	f := &projectionFixture{t: t, ctx: ctx, log: l}
	f.step = func() {}
	f.begin(runNamed("r1"), user, `{"given":1}`)
	call := agui.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}
	result := resultWith(assistantMessage("m1", "", call))
	result.Decided = &stream.Decided{CallID: "c0", Kind: "approve", Remembered: &stream.Remembered{Tool: "f", Rule: "1"}}
	f.after = f.finish(f.attempt(f.place("1/model")), result)
	if err := snapshots(l).Fork(ctx, runNamed("r1"), nil, threadNamed("early"), nil); !errors.Is(err, stream.ErrRunActive) {
		t.Errorf("fork of an active run: got %v, want ErrRunActive", err)
	}
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r1", Outcome: &agui.Outcome{
		Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i1", Reason: "tool_call", ToolCallID: "c1"}},
	}})
	to := threadNamed("f")
	if err := snapshots(l).Fork(ctx, runNamed("r1"), nil, to, nil); err != nil {
		t.Fatal(err)
	}
	snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, to, 0))
	if len(snap.Interrupts)+len(snap.ClientCalls)+len(snap.Answered)+len(snap.Decided)+len(snap.Remembered) > 0 || snap.Status() != stream.StatusIdle {
		t.Errorf("fork: got the interrupts %+v and the remembered approvals %+v, want none", snap.Interrupts, snap.Remembered)
	}
	wantEqual(t, "state of the fork", string(snap.State), `{"given":1}`)
	mustEqual(t, "number of entries", len(snap.Entries), 2)
	wantEqual(t, "number of tool calls", len(snap.Entries[1].Message.ToolCalls), 1)
	parent := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, "status of the parent", parent.Status(), stream.StatusWaiting)
}

// TestForkNeedsNewThread: a fork is refused onto a thread that exists, unless it is the same
// fork again.
func TestForkNeedsNewThread(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l, to := setupFork(t)
	if err := snapshots(l).Fork(ctx, runNamed("run1"), nil, to, nil); err != nil {
		t.Errorf("the same fork again: got %v", err)
	}
	for what, err := range map[string]error{
		"another run":    snapshots(l).Fork(ctx, runNamed("run2"), nil, to, nil),
		"onto itself":    snapshots(l).Fork(ctx, runNamed("run1"), nil, thread, nil),
		"an unknown run": snapshots(l).Fork(ctx, runNamed("run9"), nil, threadNamed("g"), nil),
	} {
		if want := map[bool]error{true: stream.ErrRunActive, false: stream.ErrThreadExists}[what == "an unknown run"]; !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	proposed := threadNamed("proposed")
	must[stream.Proposal](t)(l.ProposeInput(ctx, stream.Run{Thread: proposed, ID: "r"}, [32]byte{1}, &stream.Input{}))
	if err := snapshots(l).Fork(ctx, runNamed("run1"), nil, proposed, nil); !errors.Is(err, stream.ErrThreadExists) {
		t.Errorf("a thread with an input: got %v, want ErrThreadExists", err)
	}
}

// TestConcurrentForks: of two concurrent forks of different runs onto one thread, exactly one
// succeeds.
func TestConcurrentForks(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l, _ := setupFork(t)
	for round := range 20 {
		to := threadNamed(fmt.Sprint("round ", round))
		var wait sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wait.Go(func() { errs[i] = snapshots(l).Fork(ctx, runNamed(fmt.Sprintf("run%d", i+1)), nil, to, nil) })
		}
		wait.Wait()
		one, two := errs[0] == nil, errs[1] == nil
		mustEqual(t, fmt.Sprintf("round %d: first fork succeeds", round), one, !two)
		if !errors.Is(errors.Join(errs...), stream.ErrThreadExists) {
			t.Errorf("round %d: errors of the forks = %v, want %v", round, errors.Join(errs...), stream.ErrThreadExists)
		}
		won := "run1"
		if errs[0] != nil {
			won = "run2"
		}
		if snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, to, 0)); snap.Origin.Run != won {
			t.Fatalf("round %d: origin: got %s, want %s", round, snap.Origin.Run, won)
		}
	}
}

// TestForkOfLargeConversation: a fork inherits a conversation that is too large for a record.
// Other nodes find it too.
func TestForkOfLargeConversation(t *testing.T) {
	t.Parallel()
	ctx, server := testContext(t), streamtest.Server(t)
	l, to := streamtest.OpenOn(t, server), threadNamed("f")
	large := parseMessage("a1=" + strings.Repeat("x", 2*stream.MaxLine))
	appendRunTo(t, l, thread, 1, parseMessages("u1"), []agui.Message{large})
	if err := snapshots(l).Fork(ctx, runNamed("run1"), nil, to, nil); err != nil {
		t.Fatal(err)
	}
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	snap := appendRunTo(t, l, to, 2, parseMessages("u2"), parseMessages("a2"))
	if err := snapshots(l).FinalCheckpoint(ctx, to, snap); err != nil {
		t.Fatal(err)
	}
	elsewhere := must[*snapshot.Snapshot](t)(snapshots(streamtest.OpenOn(t, server)).Latest(ctx, to, 0)).Messages()
	if len(elsewhere) != 4 || elsewhere[1].Content.Text() != large.Content.Text() {
		t.Errorf("messages on another node: got %d, want 4", len(elsewhere))
	}
}

// TestFollowersOfFork: a reader of an unused fork is shown its messages and state as a run that is
// over, and then the following runs. Disconnected after any event, it continues after that event.
func TestFollowersOfFork(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l, to := setupFork(t)
	follower := streamtest.Follow(t, l)
	all := availableEvents(t, viewer(follower).Thread(to, view.ThreadOptions{}))
	want := []agui.EventType{agui.EventRunStarted, agui.EventMessagesSnapshot, agui.EventStateSnapshot, agui.EventRunFinished}
	if got := types(all); !slices.Equal(got, want) || !strings.Contains(string(all[1].Event), `"r1"`) || !strings.Contains(string(all[0].Event), `"parentRunId":"run1"`) {
		t.Fatalf("events of the fork: got %v %s, want %v of r1", got, all, want)
	}
	for i, f := range all {
		wantSameFrames(t, availableEvents(t, viewer(follower).Thread(to, view.ThreadOptions{After: &f.Cursor})), all[i+1:])
	}
	live := viewer(follower).Thread(to, view.ThreadOptions{After: &all[1].Cursor, IncludeLater: true})
	defer live.Close()
	appendRunTo(t, l, to, 3, parseMessages("u3"), parseMessages("a3"))
	var frames []view.Frame
	for len(frames) < 6 {
		frames = append(frames, must[[]view.Frame](t)(live.Next(ctx, 0))...)
	}
	if got := types(frames[:5]); !slices.Equal(got, append(slices.Clone(want[2:]), want[:3]...)) || !strings.Contains(string(frames[3].Event), `"u1"`) {
		t.Errorf("following events: got %v %s, want the end of r1 and the next run", got, frames[3].Event)
	}
	joined := availableEvents(t, viewer(follower).Run(stream.Run{Thread: to, ID: "run3"}, view.Options{Join: true}))
	if got := types(joined)[:2]; !slices.Equal(got, want[:2]) || !strings.Contains(string(joined[1].Event), `"u1"`) {
		t.Errorf("joined reader: got %v %s, want a prelude with u1", got, joined[1].Event)
	}
}

// availableEvents returns the events that a view shows without waiting.
func availableEvents(t *testing.T, v *view.View) []view.Frame {
	t.Helper()
	defer v.Close()
	var all []view.Frame
	for {
		frames, err := v.NextPast(testContext(t))
		if all = append(all, frames...); errors.Is(err, io.EOF) || err == nil && frames == nil {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// types returns the types of the events.
func types(frames []view.Frame) []agui.EventType {
	var all []agui.EventType
	for _, f := range frames {
		all = append(all, f.Type)
	}
	return all
}

// TestForkAfterTurn: a run can be forked after a turn whose calls have results, while it is active and
// after it has failed. The fork has nothing of the turns after that one, and no result that the end
// of the run has made up. While calls are open, there is no fork point.
func TestForkAfterTurn(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	f := &projectionFixture{t: t, ctx: ctx, log: l}
	f.step = func() {}
	points := func() []snapshot.ForkPoint {
		return must[[]snapshot.ForkPoint](t)(snapshots(l).ForkPoints(ctx, run))
	}
	f.begin(run, user, `{"given":1}`)
	if got := points(); len(got) != 0 {
		t.Errorf("fork points of a run without a turn: got %+v, want none", got)
	}
	f.callTools("m1")
	call := agui.ToolCall{ID: "open", Name: "f", Arguments: "{}"}
	f.after = f.writeFinishedAttempt(f.place("2/model"), resultWith(assistantMessage("m2", "Again.", call)), textStart("m2"), textEnd("m2"))
	f.open("2/tools", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	active := points()
	if len(active) != 1 || active[0].Kind != snapshot.ForkTurn || active[0].Name != "tools" || active[0].MessageID == "" {
		t.Fatalf("fork points of the active run: got %+v, want the end of the first turn", active)
	}
	fork := func(to string, at *snapshot.ForkPoint) {
		t.Helper()
		if err := snapshots(l).Fork(ctx, run, at, threadNamed(to), nil); err != nil {
			t.Fatal(err)
		}
		snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, threadNamed(to), 0))
		wantEqual(t, to+": state", string(snap.State), `{"given":1,"m1":2}`)
		wantConversation(t, to, l, threadNamed(to), "u1=weather? m1=Both. m1r2=sunny m1r1=sunny")
		wantEqual(t, to+": cursor of the origin", snap.Origin.At, l.CursorOf(active[0].Position).String())
		wantEqual(t, to+": step of a pipeline", snap.Origin.After, "")
	}
	fork("of the active run", &active[0])
	f.after = f.last()
	f.seal(&agui.RunError{Code: "internal", Message: "no"})
	failed := points()
	if len(failed) != 2 || failed[0] != active[0] || failed[1].Kind != snapshot.ForkEnd {
		t.Fatalf("fork points of the failed run: got %+v, want the turn and the end", failed)
	}
	fork("of the failed run", &failed[0])
	fork("of the failed run", &failed[0]) // again
	if err := snapshots(l).Fork(ctx, run, nil, threadNamed("of the failed run"), nil); !errors.Is(err, stream.ErrThreadExists) {
		t.Errorf("a fork at the end, in place of that after the turn: got %v, want ErrThreadExists", err)
	}
}
