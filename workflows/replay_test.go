package workflows_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// order is the program of the recordings, as it was then: that of examples/programs, with an activity named Price.
func order(ctx workflow.Context, a *workflows.Agent) (err error) {
	if err := a.Do(ctx, agents.Step{Name: "reserved", Tool: "reserve", Args: map[string]any{"article": "${input.text}"}}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ctx, _ := workflow.NewDisconnectedContext(ctx)
			err = errors.Join(err, a.Do(ctx, agents.Step{Name: "released", Tool: "release", Args: map[string]any{"number": "${steps.reserved.number}"}}))
		}
	}()
	var ordered string
	if err := a.Value(ctx, "input.text", &ordered); err != nil {
		return err
	}
	var price int
	priced := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(priced, "Price", ordered).Get(ctx, &price); err != nil {
		return err
	}
	if price > 50 {
		question := fmt.Sprintf("Ship ${input.text} for %d euros?", price)
		if err := a.Do(ctx, agents.Step{Name: "approved", Approve: &agents.ApproveStep{Message: question}}); err != nil {
			return err
		}
	}
	return a.Do(ctx, agents.Step{Name: "shipped", Tool: "ship", Args: map[string]any{"number": "${steps.reserved.number}"}})
}

// hurried is the program of the recording that is named after it: nobody answers in time.
func hurried(ctx workflow.Context, a *workflows.Agent) error {
	asking, cancel := workflow.WithCancel(ctx)
	defer cancel()
	answered, set := workflow.NewFuture(ctx)
	workflow.Go(asking, func(ctx workflow.Context) {
		set.Set(nil, a.Do(ctx, agents.Step{Name: "quick", Approve: &agents.ApproveStep{Message: "Quickly: yes?"}}))
	})
	workflow.NewSelector(ctx).
		AddFuture(answered, func(workflow.Future) {}).
		AddFuture(workflow.NewTimer(ctx, 2*time.Second), func(workflow.Future) { cancel() }).
		Select(ctx)
	_ = answered.Get(ctx, nil)
	return a.Do(ctx, agents.Step{Name: "shipped", Tool: "ship", Args: map[string]any{"what": "it"}})
}

// Histories that earlier versions made must replay: a run that is under way when a worker is
// deployed goes on. If this fails, a change of the workflow is not compatible; give it a version
// (RunInput.Version, or a new type name) instead of changing the recorded history. A new path
// gets a new recording (CONTRIBUTING.md says how). Those of steps, branches and a program are of
//
//	E2E_HISTORIES=/tmp/histories go test ./e2e -run 'TestSteps$|TestBranchesAsk|TestBusyPipeline|TestCancelInEachKindOfStep|TestContinuedPipelines|TestSubagentsGoOnBesideOthers|TestProgramOfAnotherModule'
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replay/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
				DataConverter: runs.DataConverter(), DisableDeadlockDetection: true, // which counts seconds without a processor
			})
			if err != nil {
				t.Fatal(err)
			}
			workflows.Register(r, workflows.Programs{"order": order, "hurried": hurried})
			recorded, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = recorded.Close() }()
			history, err := client.HistoryFromJSON(recorded, client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// The ids of children derive from that of their parent.
			id := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
			logger := temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler))
			err = r.ReplayWorkflowHistoryWithOptions(logger, history, worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
			if err != nil {
				t.Errorf("%s does not replay: %v", file, err)
			}
		})
	}
}
