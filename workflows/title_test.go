package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// startedTitle is a workflow that a run has started to have its title written.
type startedTitle struct {
	id string
	in runs.TitleInput
}

// titles returns the workflows of titles that the fixture's run starts. The activity always fails.
func (f *fixture) titles() *[]startedTitle {
	var started []startedTitle
	f.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
		if info.WorkflowType.Name != runs.TypeTitle {
			return
		}
		title := startedTitle{id: info.WorkflowExecution.ID}
		if err := args.Get(&title.in); err != nil {
			f.t.Error(err)
		}
		started = append(started, title)
	})
	f.env.RegisterActivityWithOptions(func(context.Context, runs.TitleInput) error {
		return errors.New("the model is unavailable")
	}, activity.RegisterOptions{Name: runs.ActivityWriteTitle})
	return &started
}

// TestFirstRunStartsTitle: the run starts the workflow that has the title written, and its end does
// not wait for it.
func TestFirstRunStartsTitle(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	started := f.titles()
	in := input
	in.BeginsTitle = true
	begun, ended := f.env.Now(), time.Time{}
	f.finish = func(bool) error { ended = f.env.Now(); return nil }
	result, _ := f.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if took := ended.Sub(begun); took >= time.Second { // before the second attempt to write the title
		t.Errorf("duration of the run = %s, want less than a second", took)
	}
	step := runs.Step{Run: input.Run, Execution: f.modelCalls[0].Execution, Agent: "a", Revision: "v", ID: "title"}
	want := []startedTitle{{runs.TitleWorkflowID("default-test-workflow-id"), runs.TitleInput{Step: step, Input: 1}}}
	if diff := cmp.Diff(want, *started, cmp.AllowUnexported(startedTitle{})); diff != "" {
		t.Errorf("workflows of titles (-want +got):\n%s", diff)
	}
}

// TestTitleIsStartedOnce: neither a run of an agent without a model for titles, nor the continuation
// of the first run, starts a workflow.
func TestTitleIsStartedOnce(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]runs.Input{
		"no model": {},
		"continued as new": {BeginsTitle: true, Continuation: runs.Continuation{Progress: &runs.Progress{
			Execution: "e", Turn: 2, LaneSequences: runs.LaneSequences{Main: 10}, Budget: runs.Budget{Deadline: time.Now().Add(time.Hour)},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
			started := f.titles()
			in.Run, in.AgentRef, in.Input, in.Digest = input.Run, input.AgentRef, 1, "d"
			f.run(in)
			wantEqual(t, "number of workflows of titles", len(*started), 0)
		})
	}
}

// TestSuccessorStartsNoTitle: a run that continues the first run after its interrupts is not the
// first one.
func TestSuccessorStartsNoTitle(t *testing.T) {
	t.Parallel()
	f := setupInterrupted(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(1), nil }
	started := f.titles()
	f.env.RegisterDelayedCallback(func() {
		for _, p := range []person{ann, bob} {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{p.approvalOf("c0")}}, make(chan any, 1))
		}
	}, time.Minute)
	in := input
	in.BeginsTitle = true
	next := f.runUntilContinued(in)
	wantEqual(t, "number of workflows of titles", len(*started), 1)
	wantEqual(t, "the next run begins a title", next.BeginsTitle, false)
}

// TestTitleIsTriedThreeTimes: the workflow of a title ends without an error, also if the title cannot
// be written.
func TestTitleIsTriedThreeTimes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	attempts := 0
	f.env.RegisterActivityWithOptions(func(context.Context, runs.TitleInput) error {
		attempts++
		return errors.New("the model is unavailable")
	}, activity.RegisterOptions{Name: runs.ActivityWriteTitle})
	begun := f.env.Now()
	f.env.ExecuteWorkflow(runs.TypeTitle, runs.TitleInput{Step: runs.Step{Run: input.Run, Execution: "e", Agent: "a", ID: "title"}, Input: 1})
	if err := f.env.GetWorkflowError(); err != nil {
		t.Errorf("workflow: got %v, want no error", err)
	}
	wantEqual(t, "attempts", attempts, 3)
	if took := f.env.Now().Sub(begun); took > 2*time.Minute {
		t.Errorf("duration = %s, want at most 2 minutes", took)
	}
}
