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

// TestCancelDuringEachKindOfStep: a pipeline is cancelled in a step of each kind. It ends at once,
// or after the current call if that call has a compensation. It starts no further step, and
// compensates each finished step once.
func TestCancelDuringEachKindOfStep(t *testing.T) {
	t.Parallel()
	h := newGates()
	s := setupDevWith(t, h.before)
	for kind, done := range map[string][]string{ // the work before the halt
		"tool": nil, "model": nil, "agent": nil, "pause": nil, "question": nil,
		"parallel": {"first", "left"}, "map": {"item 1", "item 2"}, "loop": {"rub 1", "rub 2"}, "pipeline": {"inner"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := s.startWith(t, s.p, "halter", func(in *kit.Input) {
				in.State, in.ForwardedProps = map[string]any{"kind": kind}, kit.PerdureProps(map[string]any{"hold": true})
			})
			switch kind {
			case "pause":
				e.reader.Until(t, func(e kit.Event) bool { return e.Type == "STEP_FINISHED" && e.Member("stepName") == "kind/flaws" })
			case "question":
				e.reader.Until(t, kit.IsCustom)
			default:
				for _, what := range done { // the interrupted call is not compensated
					e.awaitResult(t, what)
				}
				select {
				case <-h.gate(e.name).reached:
				case <-e.reader.Ctx.Done():
					t.Fatal("run does not reach its halt, want it to")
				}
			}
			asked := time.Now()
			if got := s.p.Cancel(t, e.reader.In); got != http.StatusAccepted {
				t.Fatalf("cancel: got %d, want %d", got, http.StatusAccepted)
			}
			undone := append(slices.Clone(done), "reserve")
			if kind == "loop" { // compensations do not name their round
				undone = []string{"rub", "rub", "reserve"}
			}
			if last := map[string]string{"tool": "halt", "map": "item 3", "loop": "rub"}[kind]; last != "" {
				close(h.gate(e.name).opened)
				undone = append(undone, last)
			}
			e.follow(t, nil)
			t.Logf("it ended %s after the cancel", time.Since(asked).Round(time.Millisecond))
			kit.WantOutcome(t, e.reader, "cancelled")
			e.wantUndone(t, undone)
			e.checkFollower(t)
		})
	}
}

// awaitResult reads until a tool result contains a text.
func (e *pipelineRun) awaitResult(t *testing.T, what string) {
	t.Helper()
	answers := func(e kit.Event) bool {
		return e.Type == "TOOL_CALL_RESULT" && strings.Contains(e.Member("content"), `"`+what+`"`)
	}
	if !slices.ContainsFunc(e.reader.Events, answers) {
		e.reader.Until(t, answers)
	}
}

// wantUndone checks the compensations, each once, and that no other work was done after the halt.
func (e *pipelineRun) wantUndone(t *testing.T, want []string) {
	t.Helper()
	var got []string
	for _, d := range e.server.requestsOf(e.name) {
		if what, ok := strings.CutPrefix(d.what, "undo "); ok {
			got = append(got, what)
		}
		if d.what == "after" {
			t.Error("run continues after the cancel, want its end")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("undone was (-want +got):\n%s", diff)
	}
}

// TestCancelAtAnyMoment: a pipeline is cancelled at any moment, also while it compensates for a
// failure. Each finished step is compensated once, and nothing else.
func TestCancelAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil)
	s.runUndisturbed(t, "undoer")
	events := s.events["undoer"]
	outcomes := map[string]int{}
	for n := 1; n <= events; n++ {
		if !*kit.Chaos && n%4 != 0 {
			continue
		}
		e := s.start(t, s.p, "undoer")
		e.follow(t, func(seen int) {
			if seen == n {
				s.p.Cancel(t, e.reader.In)
			}
		})
		last := e.reader.Events[len(e.reader.Events)-1]
		if outcomes[kit.Outcome(last)+last.Member("code")]++; kit.Outcome(last) != "cancelled" && last.Member("code") != "tool_failed" {
			t.Errorf("cancelled at event %d: end = %s, want cancelled or tool_failed", n, last.Data)
		}
		if e.wantUndone(t, e.keptWork(t)); t.Failed() {
			t.Fatalf("test failed with the cancel at event %d of %d", n, events)
		}
	}
	t.Logf("of %d events: %v", events, outcomes)
}

// TestCancelWithInterruptsOfBranches: a pipeline whose branches wait for approval is cancelled at
// any moment: before it ends with the interrupts, and when it begins again.
func TestCancelWithInterruptsOfBranches(t *testing.T) {
	t.Parallel()
	s := setupDevWith(t, nil)
	outcomes := map[string]int{}
	for i := range raceCount() {
		e := s.start(t, s.p, "sworn")
		run, seen := 1+i%2, 0
		last := e.followRuns(t, func(runs int) {
			if runs != run {
				return
			}
			if seen++; seen == 1+i*7%60 {
				in := e.reader.In
				in.RunID = e.lastRunID()
				s.p.Cancel(t, in)
			}
		})
		outcomes[kit.Outcome(last)]++
		var undone []string
		if kit.Outcome(last) == "cancelled" {
			undone = e.keptWork(t)
		}
		if slices.Contains(e.work(), "keep undo pledge") { // the agent had finished: its own steps are not compensated
			undone = append(slices.DeleteFunc(undone, func(what string) bool { return strings.HasPrefix(what, "right") }), "pledge")
		}
		e.wantUndone(t, undone)
		s.p.AwaitPending(t, "?thread="+e.reader.In.ThreadID)
		if t.Failed() {
			t.Fatalf("test failed in run %d with the cancel at event %d", run, 1+i*7%60)
		}
	}
	t.Logf("%v", outcomes)
}

// followRuns reads to the end of the last run and approves interrupts. seen is called after each
// event with the number of runs that have begun.
func (e *pipelineRun) followRuns(t *testing.T, seen func(runs int)) (last kit.Event) {
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
				if status, answer := kit.Decide(t, e.reader.Endpoint, e.reader.In.ThreadID, q.ID, `{"decision":"approve"}`); status != http.StatusOK && status != http.StatusNotFound && status != http.StatusConflict {
					t.Fatalf("approve: got %d %v, want 200, 404 or 409", status, answer)
				}
			}
			e.reader.AttachPath = kit.ThreadPath(e.reader.In)
		}
	}
}

// lastRunID returns the id of the latest run.
func (e *pipelineRun) lastRunID() string {
	for _, seen := range slices.Backward(e.reader.Events) {
		if seen.Type == "RUN_STARTED" {
			return seen.Member("runId")
		}
	}
	return ""
}

// keptWork returns the work in the conversation that is no compensation.
func (e *pipelineRun) keptWork(t *testing.T) (done []string) {
	t.Helper()
	for _, m := range kit.ShownMessages(t, e.reader.In.Messages, e.readAgain(t)) {
		what, ok := strings.CutPrefix(m.Content, `{"kept":"`)
		if m.Role == "tool" && ok && !strings.HasPrefix(what, "undo") {
			done = append(done, strings.TrimSuffix(what, "\"}\n"))
		}
	}
	return done
}
