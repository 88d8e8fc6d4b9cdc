package pipelines

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// A pipeline is cancelled in a step of each kind: it ends at once, or when the call is done that it
// would have to undo, does nothing more, and undoes what it had done, each thing once and nothing
// else.
func TestCancelInEachKindOfStep(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := openSite(t, h.before)
	for kind, done := range map[string][]string{ // before it halts
		"tool": nil, "model": nil, "agent": nil, "pause": nil, "question": nil,
		"parallel": {"first", "left"}, "map": {"item 1", "item 2"}, "loop": {"rub 1", "rub 2"}, "pipeline": {"inner"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := s.start(t, s.p, "halter", func(in *kit.Input) {
				in.State, in.ForwardedProps = map[string]any{"kind": kind}, kit.Asks(map[string]any{"hold": true})
			})
			switch kind {
			case "pause":
				e.reader.Until(t, func(e kit.Event) bool { return e.Type == "STEP_FINISHED" && e.Member("stepName") == "kind/flaws" })
			case "question":
				e.reader.Until(t, kit.IsCustom)
			default:
				for _, what := range done { // what is cut off before it is known to be done is not undone
					e.awaitResult(t, what)
				}
				select {
				case <-h.of(e.name).came:
				case <-e.reader.Ctx.Done():
					t.Fatal("it does not come to its halt")
				}
			}
			asked := time.Now()
			if got := s.p.Cancel(t, e.reader.In); got != http.StatusAccepted {
				t.Fatalf("cancel: %d", got)
			}
			undone := append(slices.Clone(done), "reserve")
			if kind == "loop" { // what undoes is not told for which round it does
				undone = []string{"rub", "rub", "reserve"}
			}
			if last := map[string]string{"tool": "halt", "map": "item 3", "loop": "rub"}[kind]; last != "" {
				close(h.of(e.name).opened)
				undone = append(undone, last)
			}
			e.watch(t, nil)
			t.Logf("it ended %s after the cancel", time.Since(asked).Round(time.Millisecond))
			kit.WantOutcome(t, e.reader, "cancelled")
			e.wantUndone(t, undone)
			e.shows(t)
		})
	}
}

// awaitResult reads until a tool has answered about something.
func (e *pipelineRun) awaitResult(t *testing.T, what string) {
	t.Helper()
	answers := func(e kit.Event) bool {
		return e.Type == "TOOL_CALL_RESULT" && strings.Contains(e.Member("content"), `"`+what+`"`)
	}
	if !slices.ContainsFunc(e.reader.Events, answers) {
		e.reader.Until(t, answers)
	}
}

// wantUndone checks what was undone, each thing once, and that nothing else was done behind a halt.
func (e *pipelineRun) wantUndone(t *testing.T, want []string) {
	t.Helper()
	var got []string
	for _, d := range e.w.done(e.name) {
		if what, ok := strings.CutPrefix(d.what, "undo "); ok {
			got = append(got, what)
		}
		if d.what == "after" {
			t.Error("it went on")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("undone was (-want +got):\n%s", diff)
	}
}

// A pipeline that compensates for what it has done is cancelled at any moment, also while it
// compensates for a failure already: all that is shown to be done is undone, each thing once, and
// nothing else.
func TestCancelAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	s.calm(t, "undoer")
	events := s.events["undoer"]
	outcomes := map[string]int{}
	for n := 1; n <= events; n++ {
		if !*kit.Chaos && n%4 != 0 {
			continue
		}
		e := s.errand(t, s.p, "undoer")
		e.watch(t, func(seen int) {
			if seen == n {
				s.p.Cancel(t, e.reader.In)
			}
		})
		last := e.reader.Events[len(e.reader.Events)-1]
		if outcomes[kit.Outcome(last)+last.Member("code")]++; kit.Outcome(last) != "cancelled" && last.Member("code") != "tool_failed" {
			t.Errorf("cancelled at event %d it ended with %s", n, last.Data)
		}
		if e.wantUndone(t, e.kept(t)); t.Failed() {
			t.Fatalf("it was cancelled at event %d of %d", n, events)
		}
	}
	t.Logf("of %d events: %v", events, outcomes)
}

// So is one whose branches ask people, and end with what they ask: on their way there, and when
// they begin again.
func TestCancelWhereBranchesAsk(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	outcomes := map[string]int{}
	for i := range contests() {
		e := s.errand(t, s.p, "sworn")
		run, seen := 1+i%2, 0
		last := e.through(t, func(runs int) {
			if runs != run {
				return
			}
			if seen++; seen == 1+i*7%60 {
				in := e.reader.In
				in.RunID = e.run()
				s.p.Cancel(t, in)
			}
		})
		outcomes[kit.Outcome(last)]++
		var undone []string
		if kit.Outcome(last) == "cancelled" {
			undone = e.kept(t)
		}
		if slices.Contains(e.work(), "keep undo pledge") { // the agent was done: it undoes nothing any more
			undone = append(slices.DeleteFunc(undone, func(what string) bool { return strings.HasPrefix(what, "right") }), "pledge")
		}
		e.wantUndone(t, undone)
		s.p.Pending(t, "?thread="+e.reader.In.ThreadID)
		if t.Failed() {
			t.Fatalf("run %d was cancelled at event %d", run, 1+i*7%60)
		}
	}
	t.Logf("%v", outcomes)
}

// through reads to the end of the last run, and approves what is asked while somebody is asked.
// seen is called behind each event with how many runs have begun.
func (e *pipelineRun) through(t *testing.T, seen func(runs int)) (last kit.Event) {
	t.Helper()
	for runs := 0; ; {
		last, err := e.reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if last.Type == "RUN_STARTED" {
			runs++
		}
		seen(runs)
		switch {
		case !last.Terminal():
		case kit.Outcome(last) != "interrupt":
			e.reader.Cut()
			return last
		default:
			e.reader.Cut()
			for _, q := range kit.InterruptsOf(t, e.reader.Events) {
				if status, answer := kit.Decide(t, e.reader.P, e.reader.In.ThreadID, q.ID, `{"decision":"approve"}`); status != http.StatusOK && status != http.StatusNotFound && status != http.StatusConflict {
					t.Fatalf("approve: %d %v", status, answer)
				}
			}
			e.reader.View = kit.ThreadPath(e.reader.In)
		}
	}
}

// run returns the id of the run that has begun last.
func (e *pipelineRun) run() string {
	for _, seen := range slices.Backward(e.reader.Events) {
		if seen.Type == "RUN_STARTED" {
			return seen.Member("runId")
		}
	}
	return ""
}

// kept returns what was done, and does not undo anything, as the conversation has it.
func (e *pipelineRun) kept(t *testing.T) (done []string) {
	t.Helper()
	for _, m := range kit.Show(t, e.reader.In.Messages, e.again(t)) {
		what, ok := strings.CutPrefix(m.Content, `{"kept":"`)
		if m.Role == "tool" && ok && !strings.HasPrefix(what, "undo") {
			done = append(done, strings.TrimSuffix(what, "\"}\n"))
		}
	}
	return done
}
