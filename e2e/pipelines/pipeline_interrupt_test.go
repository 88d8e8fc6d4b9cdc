package pipelines

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// untilHalted waits until the run has reached its gate.
func (e *pipelineRun) untilHalted(t *testing.T, h *gates) *gate {
	t.Helper()
	at := h.gate(e.name)
	select {
	case <-at.reached:
	case <-e.reader.Ctx.Done():
		t.Fatal("the run does not reach its halt")
	}
	return at
}

// wantWork checks the tool requests, in order.
func (e *pipelineRun) wantWork(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, d := range e.server.requestsOf(e.name) {
		if d.tool != "model" {
			got = append(got, e.plain(d.what))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tool calls (-want +got):\n%s", diff)
	}
}

// TestHeldPipeline: a held pipeline asks within its run, and has the same outcome.
func TestHeldPipeline(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil)
	e := s.startWith(t, s.p, "maker", func(in *kit.Input) { *in = in.Hold() })
	question := kit.CustomValue[kit.Interrupt](t, e.reader.Until(t, kit.IsCustom), "perdure.approval")
	thread := e.reader.In.ThreadID
	if a := s.p.AwaitPending(t, "?thread="+thread, thread).Items[0]; a.ID != question.ID || a.Agent != "maker" || a.Step == "" || a.Message == "" || a.Message != question.Message {
		t.Errorf("approval of the inbox = %+v, want that of %+v", a, question)
	}
	e.approve(t, question.ID)
	e.follow(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	e.checkOnce(t, 0)
	s.runUndisturbed(t, "maker")
	got, want := e.result(t), s.undisturbed["maker"]
	if diff := cmp.Diff(want.State, got.State) + cmp.Diff(want.Work, got.Work) + cmp.Diff(want.Messages, got.Messages); diff != "" {
		t.Errorf("outcome of the held run (-asked +held):\n%s", diff)
	}
	e.checkFollower(t)
}

// TestPausedPipeline: a paused pipeline starts no step until it is resumed, also if it is parked
// and its process is killed.
func TestPausedPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := setupDevWith(t, h.before, "PERDURE_PARK_AFTER=100ms")
	e := s.start(t, s.p, "patient")
	at := e.untilHalted(t, h)
	kit.PostThreadAction(t, s.p, e.reader.In, "pause", http.StatusNoContent)
	close(at.opened)
	kit.AwaitWorkflowType(t, s.p, e.reader.In, runs.TypeParked)
	e.wantWork(t, "begin", "halt")
	s.kill(t)
	kit.PostThreadAction(t, s.p, e.reader.In, "resume", http.StatusNoContent)
	e.follow(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	e.wantWork(t, "begin", "halt", "go on")
	e.checkFollower(t)
}

// TestSteeredPipeline: steering messages to a pipeline are in the conversation, and the next agents
// receive them.
func TestSteeredPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := setupDevWith(t, h.before)
	e := s.start(t, s.p, "patient")
	at := e.untilHalted(t, h)
	aside := kit.UserMessage(kit.Mark + " Hurry.")
	resp, err := s.p.Post(t.Context(), "/v1/threads/"+e.reader.In.ThreadID+"/messages", map[string]any{"message": aside})
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("steering: got %+v %v, want %d", resp, err, http.StatusAccepted)
	}
	resp.Body.Close()
	close(at.opened)
	e.follow(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	shown := 0
	for _, m := range kit.ShownMessages(t, e.reader.In.Messages, e.readAgain(t)) {
		if m.Content == aside.Content {
			shown++
		}
	}
	requests := s.requestsOf(e.name)
	if last := requests[len(requests)-1]; shown != 1 || !slices.Equal(last.heard, []string{e.name, aside.Content}) {
		t.Errorf("steering message: %d times in the conversation and %q sent to the model, want once in both", shown, last.heard)
	}
	e.checkFollower(t)
}

// TestBusyPipeline: a run that is queued behind a pipeline starts without the pipeline's result. A
// run that interrupts the pipeline makes it compensate first.
func TestBusyPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := setupDevWith(t, h.before)
	for onBusy, want := range map[string][]string{
		"enqueue":   {"begin", "halt", "go on", "begin", "halt", "go on"},
		"interrupt": {"begin", "halt", "undo begin", "begin", "halt", "go on"},
	} {
		e := s.start(t, s.p, "patient")
		at := e.untilHalted(t, h)
		second := e.reader.In.NextRun("run-2", onBusy, kit.UserMessage(e.name))
		next := s.p.FollowAgent(t, "/v1/agents/patient/runs", second)
		if onBusy == "enqueue" {
			close(at.opened)
		}
		e.follow(t, nil)
		if onBusy == "interrupt" {
			kit.WantOutcome(t, e.reader, "cancelled")
			close(at.opened)
		}
		next.Finish(t)
		kit.WantOutcome(t, next, "success")
		e.wantWork(t, want...)
		keys := map[string]bool{}
		for _, d := range s.requestsOf(e.name) {
			keys[d.key] = true
		}
		if len(keys) != len(want)+1 { // and the empty key of model calls
			t.Errorf("%s: idempotency keys = %v, want %d", onBusy, keys, len(want)+1)
		}
		var outputs map[string]any
		if outputs, _ = s.p.StateOf(t, second)["perdure.steps"].(map[string]any); len(outputs) != 4 {
			t.Errorf("%s: outputs in the state = %v, want 4", onBusy, outputs)
		}
	}
}

// TestPipelineInterruptsExpire: an interrupt of a pipeline expires while the pipeline is parked and
// its process is killed. The pipeline continues as its steps define.
func TestPipelineInterruptsExpire(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil, "PERDURE_PARK_AFTER=100ms")
	e := s.start(t, s.p, "hasty")
	e.reader.Finish(t)
	kit.AwaitWorkflowType(t, s.p, e.reader.In, runs.TypeParked)
	s.kill(t)
	e.reader.AttachPath = kit.ThreadPath(e.reader.In)
	e.reader.UntilSuccess(t)
	e.wantWork(t, "one rejected", "two rejected", "three approval_expired")
	e.checkFollower(t)
}

// TestStepTimeouts: a group of each kind ends at its timeout, with all active work. Finished steps
// are compensated when the run fails.
func TestStepTimeouts(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := setupDevWith(t, h.before)
	e := s.start(t, s.p, "tardy")
	e.follow(t, nil)
	last := e.reader.Events[len(e.reader.Events)-1]
	if last.Member("code") != "tool_failed" {
		t.Errorf("end of the run = %s, want tool_failed", last.Data)
	}
	for _, group := range []string{"row", "many", "again"} {
		if !slices.ContainsFunc(s.requestsOf(e.name), func(d request) bool { return d.what == group+" timeout" }) {
			t.Errorf("%s: got no timeout, want one", group)
		}
	}
	e.wantUndone(t, []string{"first", "item 1", "item 2"})
	e.checkFollower(t)
}

// TestInterruptsOfNestedPipeline: a pipeline that works for a call of a pipeline, or of an agent in
// it, asks for approval. The next run continues inside of it, also over kills.
func TestInterruptsOfNestedPipeline(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil)
	s.runUndisturbed(t, "outer")
	want := s.undisturbed["outer"]
	asked := []string{
		"keep do true prepare ORDER at once", "keep do true prepare ORDER later", "keep end handed on",
		"keep note did do true prepare ORDER at once", "keep prepare ORDER at once", "keep prepare ORDER later",
	}
	if diff := cmp.Diff(asked, want.Work); diff != "" {
		t.Errorf("tool calls (-want +got):\n%s", diff)
	}
	e, kills := s.start(t, s.p, "outer"), 0
	e.follow(t, func(n int) {
		if last := e.reader.Events[n-1]; last.Terminal() || strings.HasSuffix(last.Member("stepName"), "permits") && last.Type == "STEP_FINISHED" {
			s.kill(t)
			kills++
		}
	})
	e.checkOnce(t, cutByKill*kills)
	want.wantSame(t, "killed", e.result(t))
	e.checkFollower(t)
}

// TestForkedPipeline: a thread is forked at the end of a pipeline's run, and after its interrupt.
// The fork's runs are independent.
func TestForkedPipeline(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil)
	e := s.start(t, s.p, "outer")
	e.reader.Finish(t)
	asked := e.fork(t, s.p)
	e.approveAll(t)
	e.follow(t, nil)
	before := s.p.StateOf(t, e.reader.In)
	ended := e.fork(t, s.p)
	for name, fork := range map[string]kit.Input{"at a question": asked, "at the end": ended} {
		f := &pipelineRun{server: s.journalServer, name: e.name, reader: s.p.FollowAgent(t, "/v1/agents/outer/runs", fork)}
		f.follow(t, nil)
		kit.WantOutcome(t, f.reader, "success")
		if diff := cmp.Diff(before, s.p.StateOf(t, fork)); diff != "" {
			t.Errorf("%s: state of the fork (-parent +fork):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(before, s.p.StateOf(t, e.reader.In)); diff != "" {
		t.Errorf("state of the parent (-before +after):\n%s", diff)
	}
}

// fork returns the first input of a new fork of the run's thread.
func (e *pipelineRun) fork(t *testing.T, p *kit.Endpoint) kit.Input {
	t.Helper()
	run := ""
	for _, started := range e.reader.Events {
		if started.Type == "RUN_STARTED" {
			run = started.Member("runId")
		}
	}
	in := kit.NewInput(e.name)
	in.RunID = "run-2"
	in.ForwardedProps = kit.PerdureProps(map[string]any{"parentRunId": run, "parentThreadId": e.reader.In.ThreadID})
	return in
}
