package workflows

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// TestBranchFailuresAreBounded: 10,000 branches fail in as many ways. The step records as many
// failures as one payload holds and then starts no other branch. The failures are in order, and
// keep their own reasons up to a limit.
func TestBranchFailuresAreBounded(t *testing.T) {
	t.Parallel()
	const count = 10_000
	long := strings.Repeat(`"`, 300)
	f := &branches{progress: &runs.Branches{Path: strings.Repeat("p", 400), Count: count, Concurrency: 100, Record: 1 << 60, HighestRecord: 1 << 60}}
	failed := 0
	for index := count - 1; index >= 0 && !f.hasFailed(); index-- {
		f.addFailure(index, pipeline.Failure{Code: fmt.Sprint("code_", index), Message: long})
		failed++
	}
	for index := range f.progress.Concurrency { // the branches that were running
		f.addFailure(index, pipeline.Failure{Code: string(runs.OutcomeCancelled)})
	}
	if failed != maxFailures+1 || len(f.progress.Failures) != maxReasons {
		t.Errorf("got %d failures with %d reasons, want %d with %d", failed, len(f.progress.Failures), maxFailures+1, maxReasons)
	}
	all := f.progress.BranchFailures()
	if len(all) != failed+f.progress.Concurrency || !slices.IsSortedFunc(all, func(a, b pipeline.BranchFailure) int { return a.Index - b.Index }) {
		t.Errorf("recorded failures: got %d, want %d", len(all), failed+f.progress.Concurrency)
	}
	for _, b := range all[len(all)-maxReasons+1:] {
		if b.Code != fmt.Sprint("code_", b.Index) {
			t.Errorf("failure of branch %d: got %s, want code_%d", b.Index, b.Code, b.Index)
		}
	}
	position := runs.PipelinePosition{TreePosition: pipeline.TreePosition{Frames: make([]pipeline.Frame, 12), Undo: []string{strings.Repeat("u", 4<<10)}}, Branches: f.progress}
	if _, err := runs.DataConverter().ToPayload(runs.AdvanceInput{Step: runs.Step{Run: runs.Ref{Thread: strings.Repeat("t", 100)}}, Position: position}); err != nil {
		t.Error(err)
	}
}

// TestNilBranchesHaveNoFailures: a nil Branches has no failures.
func TestNilBranchesHaveNoFailures(t *testing.T) {
	t.Parallel()
	if all := (*runs.Branches)(nil).BranchFailures(); all != nil {
		t.Errorf("failures: got %+v, want none", all)
	}
}

// TestBranchWithoutEndIsStoppedOrLost: a branch that is cancelled before it begins counts as
// stopped by the failure or the cancel. Any other branch without an end is lost: its open lane is
// closed and the other branches are stopped.
func TestBranchWithoutEndIsStoppedOrLost(t *testing.T) {
	t.Parallel()
	broken := []runs.FailureGroup{{Failure: pipeline.Failure{Code: "broken"}, Branches: []int{0}}}
	for name, c := range map[string]struct {
		progress  runs.Branches
		cancelled bool
		err       error
		wantLost  bool
	}{
		"stopped":          {runs.Branches{StopOnFailure: true, Failures: broken, HighestRecord: 7}, false, temporal.NewCanceledError(), false},
		"cancelled":        {runs.Branches{HighestRecord: 7}, true, temporal.NewCanceledError(), false},
		"lost":             {runs.Branches{Failures: broken, HighestRecord: 7}, false, temporal.NewCanceledError(), true},
		"lost as stopped":  {runs.Branches{StopOnFailure: true, Failures: broken, HighestRecord: 7}, true, errors.New("lost"), true},
		"lost at the last": {runs.Branches{HighestRecord: 7}, false, errors.New("lost"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var suite testsuite.WorkflowTestSuite
			suite.SetLogger(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
			env := suite.NewTestWorkflowEnvironment()
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				f := &branches{run: &run{log: runs.LaneSequences{Main: 5}}, progress: &c.progress, cancelled: c.cancelled, children: &children{}}
				f.ctx, f.cancel = workflow.WithCancel(ctx)
				end, set := workflow.NewFuture(ctx)
				set.SetError(c.err)
				f.onEnd(branchSlot{index: 3, slot: 1, since: 6}, end)
				if lost := f.err != nil; lost != c.wantLost || (f.ctx.Err() != nil) != c.wantLost || len(f.free) != 1 || f.free[0] != 1 {
					t.Errorf("branches after the end: error %v, context %v, free slots %v, want lost = %t and the free slot 1", f.err, f.ctx.Err(), f.free, c.wantLost)
				}
				if lanes := []runs.Lane{{Index: 1, After: 6, Subagent: true, Branch: true}}; c.wantLost && !slices.Equal(f.run.log.Unfinished, lanes) {
					t.Errorf("closed lanes: got %+v, want %+v", f.run.log.Unfinished, lanes)
				}
				all := f.progress.BranchFailures()
				if failed := slices.Contains(all, pipeline.BranchFailure{Index: 3, Failure: pipeline.Failure{Code: "cancelled"}}); failed == c.wantLost {
					t.Errorf("failures: got %+v, want a cancelled branch 3 among them: %t", all, !c.wantLost)
				}
				return nil
			})
			if err := env.GetWorkflowError(); err != nil || !env.IsWorkflowCompleted() {
				t.Errorf("workflow: got %v, want it to complete", err)
			}
		})
	}
}
