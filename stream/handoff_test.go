package stream_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// handoffThread is a thread whose runs hand it off.
type handoffThread struct {
	t    *testing.T
	log  *stream.Log
	runs int
}

// run writes a run of an agent that hands the thread off to other agents in turn.
func (h *handoffThread) run(agent string, to ...string) {
	h.t.Helper()
	ctx := testContext(h.t)
	h.runs++
	p := stream.Place{Run: runNamed(fmt.Sprint("r", h.runs)), Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	must[uint64](h.t)(snapshots(h.log).OpenRun(ctx, p, stream.Opening{Agent: agent, Continues: "r0"}))
	var last uint64
	for i, next := range to {
		call := stream.Place{Run: p.Run, Lane: stream.LaneMain.Tool(0), Step: fmt.Sprintf("%d/tools/0", i), Execution: "e", After: last}
		result := &stream.Result{Messages: []agui.Message{parseMessage(fmt.Sprintf("t%d%d", h.runs, i))}, Handoff: &stream.Handoff{From: agent, To: next}}
		last = must[uint64](h.t)(begin(h.t, ctx, h.log, call).Finish(ctx, result))
		agent = next
	}
	if len(to) > 0 {
		p.Agent = agent
	}
	if _, _, err := h.log.Seal(ctx, p, &agui.RunFinished{ThreadID: thread.ID, RunID: p.Run.ID}); err != nil {
		h.t.Fatal(err)
	}
}

// wantAgents checks the thread's agent, and for each requested agent the agent that answers.
func (h *handoffThread) wantAgents(of stream.Thread, has string, speaks map[string]string) {
	h.t.Helper()
	snap := must[*snapshot.Snapshot](h.t)(snapshots(h.log).Latest(testContext(h.t), of, 0))
	for requested, want := range speaks {
		if got := snap.AnsweringAgent(requested); got != want {
			h.t.Errorf("after %d runs, with %s requested: got the agent %s, want %s", h.runs, requested, got, want)
		}
	}
	if got := snap.Agent(); got != has {
		h.t.Errorf("after %d runs: agent of the thread: got %s, want %s", h.runs, got, has)
	}
	if got := indexEntries(h.t, testContext(h.t), h.log)[of.ID].Agent; got != has {
		h.t.Errorf("after %d runs: agent in the index: got %s, want %s", h.runs, got, has)
	}
}

// TestLogHasAgentAfterHandoffs: an agent that has handed off a thread does not answer on it until
// the thread is handed back, or a third agent is requested.
func TestLogHasAgentAfterHandoffs(t *testing.T) {
	t.Parallel()
	h := &handoffThread{t: t, log: streamtest.Open(t)}
	h.run("a")
	h.wantAgents(thread, "a", map[string]string{"a": "a", "b": "b"})
	h.run("a", "b")
	h.wantAgents(thread, "b", map[string]string{"a": "b", "b": "b", "c": "c"})
	h.run("b", "c")
	h.wantAgents(thread, "c", map[string]string{"a": "c", "b": "c", "c": "c"})
	fork := threadNamed("a fork")
	if err := snapshots(h.log).Fork(testContext(t), runNamed("r3"), nil, fork, nil); err != nil {
		t.Fatal(err)
	}
	h.wantAgents(fork, "c", map[string]string{"a": "c", "d": "d"})
	h.run("c", "a", "b", "a")
	h.wantAgents(thread, "a", map[string]string{"a": "a", "b": "a", "c": "a"})
	h.run("c") // the run was submitted before the handoff
	if snap := must[*snapshot.Snapshot](t)(snapshots(h.log).Latest(testContext(t), thread, 0)); snap.AnsweringAgent("c") != "a" || snap.AnsweringAgent("b") != "a" {
		t.Errorf("after the late run: got the agents %s and %s, want a and a", snap.AnsweringAgent("c"), snap.AnsweringAgent("b"))
	}
	h.run("d")
	h.wantAgents(thread, "d", map[string]string{"a": "a", "b": "b", "d": "d"})
	h.wantAgents(fork, "c", map[string]string{"a": "c"})
}

// TestHandoffsAreBounded: the recorded chain of handoffs is bounded: its first agent is dropped.
func TestHandoffsAreBounded(t *testing.T) {
	t.Parallel()
	h := &handoffThread{t: t, log: streamtest.Open(t)}
	var to []string
	for i := range stream.MaxHandoffTrail + 1 {
		to = append(to, fmt.Sprint("b", i))
	}
	h.run("a", to...)
	last := to[len(to)-1]
	h.wantAgents(thread, last, map[string]string{"a": "a", "b0": last, "b7": last})
}
