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

// branchSteps returns the branching steps, as the advance after each of them receives them.
func (f *pipelineFixture) branchSteps() (fans []*runs.Branches) {
	for _, a := range f.advances {
		if a.Position.Branches != nil && !a.Resumes && len(a.Suspended) == 0 {
			fans = append(fans, a.Position.Branches)
		}
	}
	return fans
}

// wantOutputs fails the test unless the outputs of the steps are want.
func (f *pipelineFixture) wantOutputs(want string) {
	f.t.Helper()
	if want = `{"n":0,"perdure.steps":` + want + `}`; !equalJSON(string(f.state), want) {
		f.t.Errorf("the state is %s, want %s", f.state, want)
	}
}

// wantResultInAnyOrder is want for paths that ran in any order.
func (f *pipelineFixture) wantResultInAnyOrder(result runs.Result, outcome runs.Outcome, code, did string) {
	f.t.Helper()
	slices.Sort(f.executedPaths)
	want := strings.Fields(did)
	slices.Sort(want)
	f.wantResult(result, outcome, code, want...)
}

// TestConcurrentBranchesUseSeparateSlots: at most concurrency branches run at a time, each in its
// own slot. The run's usage includes the usage of its branches.
func TestConcurrentBranchesUseSeparateSlots(t *testing.T) {
	t.Parallel()
	const items, atOnce = 10, 3
	fixture := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4,5,6,7,8,9]", concurrency: 3, steps: [{name: say, agent: one}, {name: do, tool: two}]}}
  - {name: both, parallel: [{name: left, agent: one}, {name: right, agent: two}]}
`)
	var mu sync.Mutex
	together := sync.NewCond(&mu)
	busy, limit, begun := 0, 0, 0
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if !strings.HasSuffix(path, "/say") {
			return doneEvent(`1`), nil
		}
		mu.Lock()
		defer mu.Unlock()
		busy, begun, limit = busy+1, begun+1, max(limit, busy+1)
		together.Broadcast()
		for begun < atOnce { // the first branches run in parallel
			together.Wait()
		}
		busy--
		return doneEvent(`2`), nil
	}
	result := fixture.runToEnd(stepsInput())
	if len(fixture.executedPaths) != 2*items+2 || result.Outcome != runs.OutcomeSuccess || limit != atOnce {
		t.Errorf("got %+v with %d branches in parallel (want %d); paths: %v", result, limit, atOnce, fixture.executedPaths)
	}
	slots, names := map[int]int{}, map[string]bool{}
	for _, a := range fixture.advances {
		if b := a.Child; b != nil && a.After == 0 {
			slots[b.Lanes[0]]++
			names[b.Name] = true
			wantEqual(t, "branch path", b.BranchPath, a.Position.TreePosition.Branch[0].Path+fmt.Sprint("/", b.Index))
			wantEqual(t, "first advance of a branch: ID", a.ID, b.BranchPath+"/advance/1")
			wantEqual(t, "first advance of a branch: number of items", len(a.Position.Items), 1)
			wantEqual(t, "first advance of a branch: position origin", a.Position.Origin, "r")
		}
	}
	mustEqual(t, "number of slots", len(slots), atOnce)
	mustEqual(t, "branch left has started", names["left"], true)
	mustEqual(t, "branch right has started", names["right"], true)
	wantEqual(t, "branch all/9 has started", names["all/9"], true)
	if used := *fixture.finished[0].Usage[0].Total; used != items+2 {
		t.Errorf("tokens used: got %d, want %d", used, items+2)
	}
	for _, all := range fixture.branchSteps() {
		wantEqual(t, "branches after the step: next", all.Next, all.Count)
		wantEqual(t, "branches after the step: number of failures", len(all.Failures), 0)
		if all.HighestRecord == 0 {
			t.Errorf("branches after the step: HighestRecord = %v, want not 0", all.HighestRecord)
		}
	}
}

// TestFailedBranchStopsOthers: the first failing branch stops the step. Running branches are
// cancelled, later ones do not start, and the step fails with the first failure.
func TestFailedBranchStopsOthers(t *testing.T) {
	t.Parallel()
	f := setupPipeline(t, `
steps:
  - name: all
    map: {items: "[0,1,2,3]", concurrency: 2, steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: more, agent: two}]}
`)
	under, cancelled := make(chan struct{}), make(chan struct{})
	f.onExecution = func(execution *fixture, _ any) {
		execution.env.SetOnChildWorkflowCanceledListener(func(*workflow.Info) { close(cancelled) })
	}
	f.executeStep = func(path string) (pipeline.Event, error) {
		switch path {
		case "all/0/more":
			close(under)
			<-cancelled
			return cancelledEvent, nil
		case "all/1/more":
			<-under
			return pipeline.Event{}, errors.New("broken")
		}
		return doneEvent(`1`), nil
	}
	result := f.runToEnd(stepsInput())
	f.wantResultInAnyOrder(result, runs.OutcomeError, "broken", "all/0/do all/1/do all/0/more all/1/more all/0/do~undo all/1/do~undo")
	b := f.branchSteps()[0]
	want := []pipeline.BranchFailure{{Index: 0, Failure: pipeline.Failure{Code: "cancelled"}}, {Index: 1, Failure: pipeline.Failure{Code: "broken", Message: "it broke"}}}
	if diff := cmp.Diff(want, b.BranchFailures()); diff != "" || b.Next != 2 {
		t.Errorf("branches after the step: %+v; failures (-want +got):\n%s", b, diff)
	}
}

// TestBranchFailuresWithOnErrorContinue: with `onError: continue` the advance after the step
// receives the failures of branches in order.
func TestBranchFailuresWithOnErrorContinue(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4]", concurrency: 2, onError: continue, steps: [{name: do, tool: one}]}}
  - {name: then, tool: two}
`)
	fixture.executeStep = eventsByPath(map[string]string{"all/0/do": "!x", "all/2/do": "*y", "all/3/do": "!x"})
	fixture.wantResultInAnyOrder(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "all/0/do all/1/do all/2/do all/3/do all/4/do then")
	var failed []string
	for _, failure := range fixture.branchSteps()[0].BranchFailures() {
		failed = append(failed, fmt.Sprint(failure.Index, failure.Code))
	}
	mustEqual(t, "failures of branches", failed, []string{"0x", "2y", "3x"})
	wantEqual(t, "number of recorded failures", len(fixture.branchSteps()[0].Failures), 2)
	x, y := `{"error":{"code":"x","message":"it broke"}}`, `{"error":{"code":"y","message":"it broke"}}`
	fixture.wantOutputs(`{"all":[` + x + `,{"do":"ok"},` + y + `,` + x + `,{"do":"ok"}],"then":"ok"}`)
}

// TestStepTimeoutEndsBranches: a step's timeout ends its running branches and starts no other
// branch.
func TestStepTimeoutEndsBranches(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - name: all
    timeout: 10m
    map: {items: "[0,1,2]", concurrency: 1, onError: continue, steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: try, tool: two, retry: {attempts: 2, interval: 1h}}]}
`)
	fixture.executeStep = eventsByPath(map[string]string{"all/0/try": "!x"})
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, "timeout", "all/0/do", "all/0/try", "all/0/do~undo")
	b := fixture.branchSteps()[0]
	all := b.BranchFailures()
	mustEqual(t, "number of failures", len(all), 1)
	wantEqual(t, "code of the first failure", all[0].Code, "timeout")
	wantEqual(t, "branches after the step: next", b.Next, 1)
}

// TestCancelledRunCompensatesBranches: a branch that finds the run cancelled cancels the other
// branches. The run compensates for the work of finished and unfinished branches.
func TestCancelledRunCompensatesBranches(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(*pipelineFixture){"by Temporal": (*pipelineFixture).cancelRun, "by the log": func(*pipelineFixture) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, `
steps:
  - {name: before, tool: one, compensate: {tool: undo}}
  - name: all
    map: {items: "[0,1,2,3]", concurrency: 1, onError: continue, steps: [{name: do, tool: one, compensate: {agent: undo}}, {name: more, agent: two}]}
`)
			fixture.executeStep = func(path string) (pipeline.Event, error) {
				if path == "all/1/more" {
					cancel(fixture)
					return cancelledEvent, nil
				}
				return doneEvent(`1`), nil
			}
			result := fixture.runToEnd(stepsInput())
			fixture.wantResult(result, runs.OutcomeCancelled, "", "before", "all/0/do", "all/0/more", "all/1/do", "all/1/more", "all/1/do~undo", "all/0/do~undo", "before~undo")
			for _, a := range fixture.advances {
				if b := a.Child; b != nil && b.Compensates != strings.Contains(b.BranchPath, "~undo") || b != nil && b.Compensates && !a.Compensates {
					t.Errorf("advance of branch %s: got Compensates %t, the child's %t, want both %t", b.BranchPath, a.Compensates, b.Compensates, strings.Contains(b.BranchPath, "~undo"))
				}
			}
			step := fixture.branchSteps()[0]
			all := step.BranchFailures()
			mustEqual(t, "number of failures", len(all), 1)
			mustEqual(t, "index of the first failure", all[0].Index, 1)
			wantEqual(t, "code of the first failure", all[0].Code, "cancelled")
			wantEqual(t, "branches after the step: next", step.Next, 2)
		})
	}
}

// TestLostBranchFailsStep: a branch whose workflow fails fails its step. The next advance closes
// the branch's lane, whose end is unknown.
func TestLostBranchFailsStep(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1]", concurrency: 2, onError: continue, steps: [{name: ask, approve: {message: 'Now?'}}]}}
`)
	fixture.failBeforeAdvance = func(in runs.AdvanceInput) error {
		if in.Child != nil && in.Child.Index == 1 && len(in.Suspended) > 0 {
			return temporal.NewNonRetryableApplicationError("it cannot", "broken", nil)
		}
		return nil
	}
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, "broken")
	last := fixture.advances[len(fixture.advances)-1]
	mustEqual(t, "last advance: number of unfinished lanes", len(last.Unfinished), 1)
	mustEqual(t, "last advance: unfinished lane belongs to a branch", last.Unfinished[0].Branch, true)
	mustEqual(t, "last advance: unfinished lane belongs to a subagent", last.Unfinished[0].Subagent, true)
	if last.Unfinished[0].Index > 1 {
		t.Errorf("last advance: index of the unfinished lane = %v, want at most %v", last.Unfinished[0].Index, 1)
	}
	if last.Unfinished[0].After == 0 {
		t.Errorf("last advance: last record of the unfinished lane = %v, want not 0", last.Unfinished[0].After)
	}
	wantEqual(t, "last advance: position event kind", last.Position.Event.Kind, pipeline.EventFailed)
}

// TestBranchesExceedTokenLimit: a run whose branches exceed its token limit ends, and the branches
// are compensated.
func TestBranchesExceedTokenLimit(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2]", concurrency: 1, steps: [{name: do, agent: one, compensate: {agent: undo}}]}}
  - {name: then, tool: two}
`)
	in := stepsInput()
	in.Limits.Tokens = 2
	fixture.wantResultInAnyOrder(fixture.runToEnd(in), runs.OutcomeError, runs.CodeLimitTokens, "all/0/do all/1/do all/2/do all/0/do~undo all/1/do~undo all/2/do~undo")
}

// TestBranchesDivideLimits: branches that run in parallel have together the tokens and the cost that
// the run has left, also those that start later and those of a nested step.
func TestBranchesDivideLimits(t *testing.T) {
	t.Parallel()
	f := setupPipeline(t, `
steps:
  - name: all
    map:
      items: "[0,1,2,3]"
      concurrency: 3
      steps: [{name: two, parallel: [{name: a, agent: one}, {name: b, agent: one}]}]
`)
	var mu sync.Mutex
	outer, inner := map[string]runs.Limits{}, map[string]runs.Limits{}
	f.onExecution = func(execution *fixture, _ any) {
		execution.env.SetOnChildWorkflowStartedListener(func(_ *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
			var in runs.ChildInput
			if err := args.Get(&in); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(in.Child.BranchPath, "two") {
				inner[in.Child.BranchPath] = in.Limits
			} else {
				outer[in.Child.BranchPath] = in.Limits
			}
		})
	}
	in := stepsInput()
	in.Limits.Tokens, in.Limits.Cost = 600, 300
	f.runToEnd(in)
	if len(outer) != 4 || len(inner) != 8 {
		t.Fatalf("limits of the branches: got %v and %v, want 4 and 8", outer, inner)
	}
	for path, l := range outer {
		if path != "all/3" && (l.Tokens != 200 || l.Cost != 100) || path == "all/3" && l.Tokens < 198 {
			t.Errorf("branch %s: got the limits %d, %d, want 200, 100, and at least 198 tokens for the last one", path, l.Tokens, l.Cost)
		}
	}
	for path, l := range inner {
		if whole := outer[path[:len("all/0")]]; l.Tokens > whole.Tokens/2 || l.Cost > whole.Cost/2 {
			t.Errorf("branch %s: got the limits %d, %d, want at most half of %d, %d", path, l.Tokens, l.Cost, whole.Tokens, whole.Cost)
		}
	}
}

// TestBranchesContinueAsNew: when the history is long, no further branch starts. The remaining
// branches start in the next execution.
func TestBranchesContinueAsNew(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: all, map: {items: "[0,1,2,3,4]", concurrency: 2, onError: continue, steps: [{name: do, tool: one}]}}
  - {name: then, tool: two}
`)
	fixture.executeStep = eventsByPath(map[string]string{"all/0/do": "!x"})
	begun := 0
	fixture.historyIsLong = func() bool { begun++; return begun%4 == 0 }
	fixture.wantResultInAnyOrder(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "all/0/do all/1/do all/2/do all/3/do all/4/do then")
	continuesInStep := slices.ContainsFunc(fixture.executions[1:], func(in runs.Input) bool {
		b := in.Progress.Position.Branches
		return b != nil && b.Next > 0 && b.Next < b.Count && len(b.Failures) == 1 && b.HighestRecord > 0
	})
	wantEqual(t, "an execution begins with some of the branches", continuesInStep, true)
	wantEqual(t, "number of recorded failures", len(fixture.branchSteps()[0].Failures), 1)
}

// TestWaitingBranchesKeepSlots: branches that wait for approvers keep their slots and continue
// after the decisions. The remaining branches share the remaining slots.
func TestWaitingBranchesKeepSlots(t *testing.T) {
	t.Parallel()
	for when, c := range map[string]struct {
		wantWaiting []int // branches that wait, at the end of each run
		wantPaths   string
	}{
		"item == 0": {[]int{1}, "all/1/do all/2/do all/3/do all/4/do all/0/ask all/0/do then/0/more then/1/more"},
		"true":      {[]int{2, 2, 1}, "all/0/ask all/0/do all/1/ask all/1/do all/2/ask all/2/do all/3/ask all/3/do all/4/ask all/4/do then/0/more then/1/more"},
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, `
steps:
  - name: all
    map:
      items: "[0,1,2,3,4]"
      concurrency: 2
      steps: [{name: ask, approve: {message: "${string(item)}?"}, when: "`+when+`"}, {name: do, agent: one}]
  - {name: then, map: {items: "[0,1]", steps: [{name: more, tool: two}]}}
`)
			fixture.wantResultInAnyOrder(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", c.wantPaths)
			var waits []int
			for _, end := range fixture.finished[:len(fixture.finished)-1] {
				waits = append(waits, len(end.Interrupts.Items))
				wantEqual(t, "outcome of the branch", end.Outcome, runs.OutcomeInterrupt)
				wantEqual(t, "number of suspended children", len(end.Interrupts.Suspended), len(end.Interrupts.Items))
			}
			if !slices.Equal(waits, c.wantWaiting) || fixture.finished[len(fixture.finished)-1].Run.ID == "r" {
				t.Errorf("waiting branches at the end of each run: got %v, want %v", waits, c.wantWaiting)
			}
			used := int64(0)
			for _, end := range fixture.finished {
				for _, u := range end.Usage {
					used += *u.Total
				}
			}
			if used != 5 {
				t.Errorf("tokens used: got %d, want 5", used)
			}
		})
	}
}

// TestRejectedBranchFailsStep: a branch whose approval is rejected fails its step, and the other
// branches are compensated.
func TestRejectedBranchFailsStep(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - name: all
    map:
      items: "[0,1]"
      concurrency: 2
      steps: [{name: do, tool: one, compensate: {tool: undo}}, {name: ask, approve: {message: "${string(item)}?"}}]
`)
	fixture.executeStep = eventsByPath(map[string]string{"all/1/ask": "!no"})
	fixture.wantResultInAnyOrder(fixture.runToEnd(stepsInput()), runs.OutcomeError, "rejected", "all/0/do all/1/do all/0/ask all/1/ask all/0/do~undo all/1/do~undo")
}

// TestBranchWorkflowIDs: each branch's workflow has its own ID, also in nested branches and in the
// run that continues them. Each branch knows its parent.
func TestBranchWorkflowIDs(t *testing.T) {
	t.Parallel()
	f := setupPipeline(t, `
steps:
  - name: out
    map:
      items: "['a']"
      steps: [{name: in, parallel: [{name: left, tool: one}, {name: right, steps: [{name: ask, approve: {message: "${item}?"}}]}]}]
`)
	var mu sync.Mutex
	var ids []string
	f.onExecution = func(execution *fixture, _ any) {
		execution.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, info.WorkflowExecution.ID)
		})
	}
	f.wantResultInAnyOrder(f.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "out/0/in/left out/0/in/right/ask")
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); len(ids) != 5 || n != 5 { // two of them in both runs
		t.Errorf("workflow IDs of branches: got %q, want 5 different ones", ids)
	}
	form := regexp.MustCompile(`^default-test-workflow-id/[0-9a-f]{20}/out/0(/in/[01])?$`)
	for _, id := range ids {
		if !form.MatchString(id) {
			t.Errorf("workflow ID of a branch: got %q, want a match of %s", id, form)
		}
	}
	within := map[string]string{}
	for _, a := range f.advances {
		if b := a.Child; b != nil {
			within[b.BranchPath] = b.ParentCallID
			wantEqual(t, b.BranchPath+": the outer branch is the parent", b.ParentCallID == f.advances[1].Child.CallID, strings.HasPrefix(b.BranchPath, "out/0/in"))
			wantEqual(t, "child of a branch's advance: number of lanes", len(b.Lanes), 1+strings.Count(b.BranchPath, "in"))
		}
	}
	if len(within) != 3 {
		t.Errorf("branches: got %v, want 3", within)
	}
}
