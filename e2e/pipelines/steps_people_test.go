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

// halted waits until the errand has come to its halt.
func (e *pipelineRun) halted(t *testing.T, h *gates) *gate {
	t.Helper()
	at := h.of(e.name)
	select {
	case <-at.came:
	case <-e.reader.Ctx.Done():
		t.Fatal("it does not come to its halt")
	}
	return at
}

// wantWork checks what the tools were asked for, in order.
func (e *pipelineRun) wantWork(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, d := range e.w.done(e.name) {
		if d.tool != "model" {
			got = append(got, e.plain(d.what))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tools were asked for (-want +got):\n%s", diff)
	}
}

// A pipeline that is held asks in the run that it is, and comes to the same there.
func TestHeldPipeline(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	e := s.start(t, s.p, "maker", func(in *kit.Input) { *in = in.Held() })
	question := kit.Custom[kit.Interrupt](t, e.reader.Until(t, kit.IsCustom), "perdure.approval")
	thread := e.reader.In.ThreadID
	if a := s.p.Pending(t, "?thread="+thread, thread).Items[0]; a.ID != question.ID || a.Agent != "maker" || a.Step == "" || a.Message == "" || a.Message != question.Message {
		t.Errorf("the inbox has %+v for %+v", a, question)
	}
	e.approve(t, question.ID)
	e.watch(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	e.once(t, 0)
	s.calm(t, "maker")
	got, want := e.product(t), s.undisturbed["maker"]
	if diff := cmp.Diff(want.State, got.State) + cmp.Diff(want.Work, got.Work) + cmp.Diff(want.Messages, got.Messages); diff != "" {
		t.Errorf("held it comes to something else (-asked +held):\n%s", diff)
	}
	e.shows(t)
}

// A pipeline that is paused does nothing until it is resumed, also where it is parked meanwhile and
// its process is killed.
func TestPausedPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := openSite(t, h.before, "PERDURE_PARK_AFTER=100ms")
	e := s.errand(t, s.p, "patient")
	at := e.halted(t, h)
	kit.TellThread(t, s.p, e.reader.In, "pause", http.StatusNoContent)
	close(at.opened)
	kit.AwaitType(t, s.p, e.reader.In, runs.TypeParked)
	e.wantWork(t, "begin", "halt")
	s.kill(t)
	kit.TellThread(t, s.p, e.reader.In, "resume", http.StatusNoContent)
	e.watch(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	e.wantWork(t, "begin", "halt", "go on")
	e.shows(t)
}

// What people say to a pipeline while it is under way is in the conversation, and told to the
// agents behind it.
func TestSteeredPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := openSite(t, h.before)
	e := s.errand(t, s.p, "patient")
	at := e.halted(t, h)
	aside := kit.User(kit.Mark + " Hurry.")
	resp, err := s.p.Post(t.Context(), "/v1/threads/"+e.reader.In.ThreadID+"/messages", map[string]any{"message": aside})
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%+v %v", resp, err)
	}
	resp.Body.Close()
	close(at.opened)
	e.watch(t, nil)
	kit.WantOutcome(t, e.reader, "success")
	told := 0
	for _, m := range kit.Show(t, e.reader.In.Messages, e.again(t)) {
		if m.Content == aside.Content {
			told++
		}
	}
	deeds := s.done(e.name)
	if last := deeds[len(deeds)-1]; told != 1 || !slices.Equal(last.heard, []string{e.name, aside.Content}) {
		t.Errorf("it is told %d times, and the model heard %q", told, last.heard)
	}
	e.shows(t)
}

// A run that waits for a pipeline begins without what that has come to; one that takes its place
// has it undo what it has done first.
func TestBusyPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := openSite(t, h.before)
	for onBusy, want := range map[string][]string{
		"enqueue":   {"begin", "halt", "go on", "begin", "halt", "go on"},
		"interrupt": {"begin", "halt", "undo begin", "begin", "halt", "go on"},
	} {
		e := s.errand(t, s.p, "patient")
		at := e.halted(t, h)
		second := e.reader.In.After("run-2", onBusy, kit.User(e.name))
		next := s.p.FollowAgent(t, "/v1/agents/patient/runs", second)
		if onBusy == "enqueue" {
			close(at.opened)
		}
		e.watch(t, nil)
		if onBusy == "interrupt" {
			kit.WantOutcome(t, e.reader, "cancelled")
			close(at.opened)
		}
		next.Finish(t)
		kit.WantOutcome(t, next, "success")
		e.wantWork(t, want...)
		keys := map[string]bool{}
		for _, d := range s.done(e.name) {
			keys[d.key] = true
		}
		if len(keys) != len(want)+1 { // and none, of models
			t.Errorf("%s: the calls have the keys %v", onBusy, keys)
		}
		var outputs map[string]any
		if outputs, _ = s.p.StateOf(t, second)["steps"].(map[string]any); len(outputs) != 4 {
			t.Errorf("%s: the state has %v", onBusy, outputs)
		}
	}
}

// Nobody answers a pipeline, which is parked and whose process is killed: it goes on as its steps
// say.
func TestPipelineThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil, "PERDURE_PARK_AFTER=100ms")
	e := s.errand(t, s.p, "hasty")
	e.reader.Finish(t)
	kit.AwaitType(t, s.p, e.reader.In, runs.TypeParked)
	s.kill(t)
	e.reader.View = kit.ThreadPath(e.reader.In)
	e.reader.UntilSuccess(t)
	e.wantWork(t, "one rejected", "two rejected", "three approval_expired")
	e.shows(t)
}

// Groups of each kind end when their time is over, with all that is under way in them. What was
// done in them is undone when the run fails.
func TestTardyPipeline(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := openSite(t, h.before)
	e := s.errand(t, s.p, "tardy")
	e.watch(t, nil)
	last := e.reader.Events[len(e.reader.Events)-1]
	if last.Member("code") != "tool_failed" {
		t.Errorf("it ended with %s", last.Data)
	}
	for _, group := range []string{"row", "many", "again"} {
		if !slices.ContainsFunc(s.done(e.name), func(d request) bool { return d.what == group+" timeout" }) {
			t.Errorf("%s did not fail for its time", group)
		}
	}
	e.wantUndone(t, []string{"first", "item 1", "item 2"})
	e.shows(t)
}

// A pipeline that works for a call of a pipeline, or of an agent in it, asks people: the run that
// goes on with the answer does so inside, whatever is killed meanwhile.
func TestPipelineInPipelineAsks(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	s.calm(t, "outer")
	want := s.undisturbed["outer"]
	asked := []string{
		"keep do true prepare ORDER at once", "keep do true prepare ORDER later", "keep end handed on",
		"keep note did do true prepare ORDER at once", "keep prepare ORDER at once", "keep prepare ORDER later",
	}
	if diff := cmp.Diff(asked, want.Work); diff != "" {
		t.Errorf("the tools were asked for (-want +got):\n%s", diff)
	}
	e, kills := s.errand(t, s.p, "outer"), 0
	e.watch(t, func(n int) {
		if last := e.reader.Events[n-1]; last.Terminal() || strings.HasSuffix(last.Member("stepName"), "permits") && last.Type == "STEP_FINISHED" {
			s.kill(t)
			kills++
		}
	})
	e.once(t, cutByKill*kills)
	want.same(t, "killed", e.product(t))
	e.shows(t)
}

// A thread is forked at the end of a pipeline's run, and behind its question. The fork's runs are
// its own.
func TestForkedPipeline(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	e := s.errand(t, s.p, "outer")
	e.reader.Finish(t)
	asked := e.fork(t, s.p)
	e.asks(t)
	e.watch(t, nil)
	before := s.p.StateOf(t, e.reader.In)
	ended := e.fork(t, s.p)
	for name, fork := range map[string]kit.Input{"at a question": asked, "at the end": ended} {
		f := &pipelineRun{w: s.journalServer, name: e.name, reader: s.p.FollowAgent(t, "/v1/agents/outer/runs", fork)}
		f.watch(t, nil)
		kit.WantOutcome(t, f.reader, "success")
		if diff := cmp.Diff(before, s.p.StateOf(t, fork)); diff != "" {
			t.Errorf("%s: the fork comes to something else:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(before, s.p.StateOf(t, e.reader.In)); diff != "" {
		t.Errorf("the parent has changed:\n%s", diff)
	}
}

// fork returns the first run of a fork of the errand's thread, as it is now.
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
	in.ForwardedProps = kit.Asks(map[string]any{"parentRunId": run, "parentThreadId": e.reader.In.ThreadID})
	return in
}
