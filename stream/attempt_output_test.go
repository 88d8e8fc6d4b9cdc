package stream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestAttemptOutputsHaveEarlierNotes: each process that takes over a lane reads the same
// notes and texts of earlier attempts, however these ended.
func TestAttemptOutputsHaveEarlierNotes(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	opened := must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}))
	p := place("1/model", opened)
	type note struct {
		N int `json:"n"`
	}
	silent := begin(t, ctx, l, p)
	noted := begin(t, ctx, l, p)
	for n := range 2 {
		if err := noted.Note(note{n}); err != nil {
			t.Fatal(err)
		}
		if err := noted.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := noted.Emit(ctx, textContent("m", "Hel"), &agui.ToolCallStart{ToolCallID: "c", ToolCallName: "add"}, &agui.ToolCallArgs{ToolCallID: "c", Delta: "{}"}); err != nil {
		t.Fatal(err)
	}
	if err := noted.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	last := begin(t, ctx, l, p)
	if err := last.Note(note{7}); err != nil {
		t.Fatal(err)
	}
	seq := must[uint64](t)(last.Finish(ctx, &stream.Result{Answer: json.RawMessage(`{}`)}, textContent("m", "Hello")))

	all := must[[]stream.AttemptOutput](t)(l.AttemptOutputs(ctx, p))
	var got []string
	for _, s := range all {
		done := ""
		if s.Done != nil && s.Done.Seq == seq {
			done, s.Note = " done", nil // the note of an attempt that finishes may be left out
		}
		got = append(got, s.Writer+" "+s.Step+" "+string(s.Note)+" "+s.Text+done)
	}
	want := []string{silent.Writer() + " 1/model  ", noted.Writer() + ` 1/model {"n":1} Heladd{}`, last.Writer() + " 1/model  Hello done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if rest := must[[]stream.AttemptOutput](t)(l.AttemptOutputs(ctx, place("2/model", seq))); len(rest) != 0 {
		t.Errorf("after the last record: got %+v, want none", rest)
	}
}

// TestAttemptWithoutOutputLeavesNoMessage: an attempt with notes and without output leaves no
// message.
func TestAttemptWithoutOutputLeavesNoMessage(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	p := place("1/model", must[uint64](t)(snapshots(l).OpenRun(ctx, place("1/model", 0), stream.Opening{RunID: run.ID})))
	a := begin(t, ctx, l, p)
	if err := a.Note("a call"); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.SupersedeKeepingMessages(ctx, p); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(ctx); err != nil {
		t.Error("what was flushed is in the log:", err)
	}
	r := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	if len(r.Messages()) != 0 {
		t.Errorf("conversation: got %+v, want no messages", r.Messages())
	}
}

// TestThreadSumsEstimates: a thread sums the estimates of its runs, and the totals of answers
// without one. It keeps the figures of each run.
func TestThreadSumsEstimates(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	n := func(n int64) *int64 { return &n }
	estimated := snapshot.EstimatedUsage{Calls: 1, Usage: []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(4), OutputTokens: n(1), TotalTokens: n(5)}}}
	metadata := agui.Metadata{}
	if err := estimated.Put(metadata); err != nil {
		t.Fatal(err)
	}
	base := agui.BaseEvent{Metadata: metadata}
	for i, end := range []agui.Event{
		&agui.RunFinished{Usage: []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(10), OutputTokens: n(2), TotalTokens: n(12)}}},
		&agui.RunFinished{BaseEvent: base, Usage: []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(4), OutputTokens: n(1)}}},
		&agui.RunError{BaseEvent: base, Message: "late", Usage: []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(4), OutputTokens: n(1)}}},
	} {
		r := stream.Run{Thread: thread, ID: strings.Repeat("r", i+1)}
		at := stream.Place{Run: r, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
		at.After = must[uint64](t)(snapshots(l).OpenRun(ctx, at, stream.Opening{RunID: r.ID}))
		if _, _, err := l.Seal(ctx, at, end); err != nil {
			t.Fatal(err)
		}
	}
	r := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	used := []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(18), OutputTokens: n(4), TotalTokens: n(22)}}
	if diff := cmp.Diff(used, r.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	wantEstimated := &snapshot.EstimatedUsage{Calls: 2, Usage: []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(8), OutputTokens: n(2), TotalTokens: n(10)}}}
	if diff := cmp.Diff(wantEstimated, r.Estimated); diff != "" {
		t.Errorf("estimates (-want +got):\n%s", diff)
	}
	total := []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(10), OutputTokens: n(2), TotalTokens: n(12)}}
	part := []agui.TokenUsage{{Provider: "p", Model: "m", InputTokens: n(4), OutputTokens: n(1)}}
	for i, want := range []snapshot.RunNote{{Usage: total}, {Usage: part, Estimated: &estimated}, {Usage: part, Estimated: &estimated}} {
		got := snapshot.RunNote{Usage: r.Runs[i].Usage, Estimated: r.Runs[i].Estimated}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
	}
}
