package workflows_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// fans returns the steps with branches as the advance behind them was told of them.
func (k *pipelineFixture) fans() (fans []*runs.Branches) {
	for _, a := range k.advances {
		if a.Position.Branches != nil && !a.Resumes && len(a.Suspended) == 0 {
			fans = append(fans, a.Position.Branches)
		}
	}
	return fans
}

// wantState fails the test unless the outputs of the steps are these.
func (k *pipelineFixture) wantOutputs(want string) {
	k.t.Helper()
	if want = `{"n":0,"steps":` + want + `}`; !sameJSON(string(k.state), want) {
		k.t.Errorf("the state is %s, want %s", k.state, want)
	}
}

// wantSet is want for what was done in any order.
func (k *pipelineFixture) wantSet(result runs.Result, outcome runs.Outcome, code, did string) {
	k.t.Helper()
	slices.Sort(k.did)
	want := strings.Fields(did)
	slices.Sort(want)
	k.want(result, outcome, code, want...)
}

// As many branches as may be are under way at a time, each in a slot that nobody else has; what
// they have used is the run's.
func TestBranchesHaveSlots(t *testing.T) {
	t.Parallel()
	const items, atOnce = 10, 3
	k := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4,5,6,7,8,9]", concurrency: 3, steps: [{name: say, agent: one}, {name: do, tool: two}]}}
  - {name: both, parallel: [{name: left, agent: one}, {name: right, agent: two}]}
`)
	var mu sync.Mutex
	together := sync.NewCond(&mu)
	busy, most, begun := 0, 0, 0
	k.answer = func(path string) (pipeline.Event, error) {
		if !strings.HasSuffix(path, "/say") {
			return done(`1`), nil
		}
		mu.Lock()
		defer mu.Unlock()
		busy, begun, most = busy+1, begun+1, max(most, busy+1)
		together.Broadcast()
		for begun < atOnce { // the first ones meet
			together.Wait()
		}
		busy--
		return done(`2`), nil
	}
	result := k.walk(stepsInput())
	if len(k.did) != 2*items+2 || result.Outcome != runs.OutcomeSuccess || most != atOnce {
		t.Errorf("%+v: %d at a time did %v", result, most, k.did)
	}
	slots, names := map[int]int{}, map[string]bool{}
	for _, a := range k.advances {
		if b := a.Child; b != nil && a.After == 0 {
			slots[b.Lanes[0]]++
			names[b.Name] = true
			if b.BranchPath != a.Position.Cursor.Branch[0].Path+fmt.Sprint("/", b.Index) || a.ID != b.BranchPath+"/advance/1" || len(a.Position.Items) != 1 || a.Position.Origin != "r" {
				t.Errorf("a branch begins with %+v", a)
			}
		}
	}
	if len(slots) != atOnce || !names["left"] || !names["right"] || !names["all/9"] {
		t.Errorf("the branches %v have the slots %v", names, slots)
	}
	if used := *k.finishes[0].Usage[0].Total; used != items+2 {
		t.Errorf("%d tokens are used", used)
	}
	for _, f := range k.fans() {
		if f.Next != f.Count || len(f.Failures) != 0 || f.Last == 0 {
			t.Errorf("it has ended as %+v", f)
		}
	}
}

// The first branch that fails stops the others: those under way are cancelled, those behind do not
// begin. The step fails with what stopped them.
func TestABranchStopsTheOthers(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - name: all
    map: {items: "[0,1,2,3]", concurrency: 2, steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: more, agent: two}]}
`)
	under, cancelled := make(chan struct{}), make(chan struct{})
	k.begun = func(w *fixture, _ any) {
		w.env.SetOnChildWorkflowCanceledListener(func(*workflow.Info) { close(cancelled) })
	}
	k.answer = func(path string) (pipeline.Event, error) {
		switch path {
		case "all/0/more":
			close(under)
			<-cancelled
			return stopped, nil
		case "all/1/more":
			<-under
			return pipeline.Event{}, errors.New("broken")
		}
		return done(`1`), nil
	}
	result := k.walk(stepsInput())
	k.wantSet(result, runs.OutcomeError, "broken", "all/0/do all/1/do all/0/more all/1/more all/0/do~undo all/1/do~undo")
	f := k.fans()[0]
	want := []pipeline.BranchFailure{{Index: 0, Failure: pipeline.Failure{Code: "cancelled"}}, {Index: 1, Failure: pipeline.Failure{Code: "broken", Message: "it broke"}}}
	if diff := cmp.Diff(want, f.BranchFailures()); diff != "" || f.Next != 2 {
		t.Errorf("it has ended as %+v (-want +got):\n%s", f, diff)
	}
}

// Where a step goes on without branches that failed, each is told of, in their order.
func TestBranchesFail(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4]", concurrency: 2, onError: continue, steps: [{name: do, tool: one}]}}
  - {name: then, tool: two}
`)
	k.answer = byPath(map[string]string{"all/0/do": "!x", "all/2/do": "*y", "all/3/do": "!x"})
	k.wantSet(k.walk(stepsInput()), runs.OutcomeSuccess, "", "all/0/do all/1/do all/2/do all/3/do all/4/do then")
	var failed []string
	for _, f := range k.fans()[0].BranchFailures() {
		failed = append(failed, fmt.Sprint(f.Index, f.Code))
	}
	if !slices.Equal(failed, []string{"0x", "2y", "3x"}) || len(k.fans()[0].Failures) != 2 {
		t.Errorf("failed have %q, as %+v", failed, k.fans()[0].Failures)
	}
	x, y := `{"error":{"code":"x","message":"it broke"}}`, `{"error":{"code":"y","message":"it broke"}}`
	k.wantOutputs(`{"all":[` + x + `,{"do":"ok"},` + y + `,` + x + `,{"do":"ok"}],"then":"ok"}`)
}

// When the time of a step is over its branches end, and no other one begins.
func TestBranchesRunOutOfTime(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - name: all
    timeout: 10m
    map: {items: "[0,1,2]", concurrency: 1, onError: continue, steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: try, tool: two, retry: {attempts: 2, interval: 1h}}]}
`)
	k.answer = byPath(map[string]string{"all/0/try": "!x"})
	k.want(k.walk(stepsInput()), runs.OutcomeError, "timeout", "all/0/do", "all/0/try", "all/0/do~undo")
	f := k.fans()[0]
	if all := f.BranchFailures(); len(all) != 1 || all[0].Code != "timeout" || f.Next != 1 {
		t.Errorf("it has ended as %+v", f)
	}
}

// A branch that finds the run cancelled cancels the others; what they have done is compensated for,
// and so are branches that were done.
func TestBranchesOfACancelledRun(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(*pipelineFixture){"by Temporal": (*pipelineFixture).cancel, "by the log": func(*pipelineFixture) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setupPipeline(t, `
steps:
  - {name: before, tool: one, compensate: {tool: undo}}
  - name: all
    map: {items: "[0,1,2,3]", concurrency: 1, onError: continue, steps: [{name: do, tool: one, compensate: {agent: undo}}, {name: more, agent: two}]}
`)
			k.answer = func(path string) (pipeline.Event, error) {
				if path == "all/1/more" {
					cancel(k)
					return stopped, nil
				}
				return done(`1`), nil
			}
			result := k.walk(stepsInput())
			k.want(result, runs.OutcomeCancelled, "", "before", "all/0/do", "all/0/more", "all/1/do", "all/1/more", "all/1/do~undo", "all/0/do~undo", "before~undo")
			for _, a := range k.advances {
				if b := a.Child; b != nil && b.Compensates != strings.Contains(b.BranchPath, "~undo") || b != nil && b.Compensates && !a.Compensates {
					t.Errorf("a branch advances with %+v", a)
				}
			}
			f := k.fans()[0]
			if all := f.BranchFailures(); len(all) != 1 || all[0].Index != 1 || all[0].Code != "cancelled" || f.Next != 2 {
				t.Errorf("it has ended as %+v", f)
			}
		})
	}
}

// A branch whose workflow itself fails fails the step: where its lane ends is not known, and it is
// closed.
func TestABranchIsLost(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1]", concurrency: 2, onError: continue, steps: [{name: ask, approve: {message: 'Now?'}}]}}
`)
	k.refuse = func(in runs.Advance) error {
		if in.Child != nil && in.Child.Index == 1 && len(in.Suspended) > 0 {
			return temporal.NewNonRetryableApplicationError("it cannot", "broken", nil)
		}
		return nil
	}
	k.want(k.walk(stepsInput()), runs.OutcomeError, "broken")
	last := k.advances[len(k.advances)-1]
	if l := last.Unfinished; len(l) != 1 || !l[0].Branch || !l[0].Subagent || l[0].Index > 1 || l[0].After == 0 || last.Position.Event.Kind != pipeline.EventFailed {
		t.Errorf("the walk goes on with %+v", last)
	}
}

// A run whose branches have spent more than it may ends, and they are compensated for.
func TestBranchesAtALimit(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2]", concurrency: 1, steps: [{name: do, agent: one, compensate: {agent: undo}}]}}
  - {name: then, tool: two}
`)
	in := stepsInput()
	in.Limits.Tokens = 2
	k.wantSet(k.walk(in), runs.OutcomeError, runs.CodeLimitTokens, "all/0/do all/1/do all/2/do all/0/do~undo all/1/do~undo all/2/do~undo")
}

// When the history is long no branch begins any more, and the others begin in another execution.
func TestBranchesContinueAsNew(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4]", concurrency: 2, onError: continue, steps: [{name: do, tool: one}]}}
  - {name: then, tool: two}
`)
	k.answer = byPath(map[string]string{"all/0/do": "!x"})
	begun := 0
	k.renews = func() bool { begun++; return begun%4 == 0 }
	k.wantSet(k.walk(stepsInput()), runs.OutcomeSuccess, "", "all/0/do all/1/do all/2/do all/3/do all/4/do then")
	within := slices.ContainsFunc(k.runs[1:], func(in runs.Input) bool {
		f := in.Progress.Position.Branches
		return f != nil && f.Next > 0 && f.Next < f.Count && len(f.Failures) == 1 && f.Last > 0
	})
	if !within || len(k.fans()[0].Failures) != 1 {
		t.Errorf("it goes on as %+v", k.runs)
	}
}

// Branches that wait for people keep their slots, and go on where they were when everybody has
// answered. The others take turns in the slots that are left.
func TestBranchesWait(t *testing.T) {
	t.Parallel()
	for asks, c := range map[string]struct {
		waits []int // branches that wait, at the end of each run
		did   string
	}{
		"item == 0": {[]int{1}, "all/1/do all/2/do all/3/do all/4/do all/0/ask all/0/do then/0/more then/1/more"},
		"true":      {[]int{2, 2, 1}, "all/0/ask all/0/do all/1/ask all/1/do all/2/ask all/2/do all/3/ask all/3/do all/4/ask all/4/do then/0/more then/1/more"},
	} {
		t.Run(asks, func(t *testing.T) {
			t.Parallel()
			k := setupPipeline(t, `
steps:
  - name: all
    map:
      items: "[0,1,2,3,4]"
      concurrency: 2
      steps: [{name: ask, approve: {message: "${string(item)}?"}, when: "`+asks+`"}, {name: do, agent: one}]
  - {name: then, map: {items: "[0,1]", steps: [{name: more, tool: two}]}}
`)
			k.wantSet(k.walk(stepsInput()), runs.OutcomeSuccess, "", c.did)
			var waits []int
			for _, end := range k.finishes[:len(k.finishes)-1] {
				waits = append(waits, len(end.Interrupts.Calls))
				if end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Suspended) != len(end.Interrupts.Calls) {
					t.Errorf("a run ends with %+v", end)
				}
			}
			if !slices.Equal(waits, c.waits) || k.finishes[len(k.finishes)-1].Run.ID == "r" {
				t.Errorf("the runs end with %v branches that wait", waits)
			}
			used := int64(0)
			for _, end := range k.finishes {
				for _, u := range end.Usage {
					used += *u.Total
				}
			}
			if used != 5 {
				t.Errorf("%d tokens are used", used)
			}
		})
	}
}

// The answer to one branch does not keep it from failing, nor the others from being compensated
// for.
func TestBranchesAreRefused(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - name: all
    map:
      items: "[0,1]"
      concurrency: 2
      steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: ask, approve: {message: "${string(item)}?"}}]
`)
	k.answer = byPath(map[string]string{"all/1/ask": "!no"})
	k.wantSet(k.walk(stepsInput()), runs.OutcomeError, "rejected", "all/0/do all/1/do all/0/ask all/1/ask all/0/do~undo all/1/do~undo")
}

// The workflows of branches have ids of their own, also of branches in branches and in the run that
// goes on with them; each knows where it is.
func TestBranchesHaveIDs(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - name: out
    map:
      items: "['a']"
      steps: [{name: in, parallel: [{name: left, tool: one}, {name: right, steps: [{name: ask, approve: {message: "${item}?"}}]}]}]
`)
	var mu sync.Mutex
	var ids []string
	k.begun = func(w *fixture, _ any) {
		w.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, info.WorkflowExecution.ID)
		})
	}
	k.wantSet(k.walk(stepsInput()), runs.OutcomeSuccess, "", "out/0/in/left out/0/in/right/ask")
	slices.Sort(ids)
	if len(ids) != 5 || len(slices.Compact(slices.Clone(ids))) != 5 { // two of them in both runs
		t.Errorf("the ids are %q", ids)
	}
	form := regexp.MustCompile(`^default-test-workflow-id/[0-9a-f]{20}/out/0(/in/[01])?$`)
	for _, id := range ids {
		if !form.MatchString(id) {
			t.Errorf("an id is %q", id)
		}
	}
	within := map[string]string{}
	for _, a := range k.advances {
		if b := a.Child; b != nil {
			within[b.BranchPath] = b.ParentCallID
			if outer := k.advances[1].Child; strings.HasPrefix(b.BranchPath, "out/0/in") != (b.ParentCallID == outer.CallID) || len(b.Lanes) != 1+strings.Count(b.BranchPath, "in") {
				t.Errorf("a branch is %+v", b)
			}
		}
	}
	if len(within) != 3 {
		t.Errorf("there are the branches %v", within)
	}
}
