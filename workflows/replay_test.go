package workflows_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/workflows"
)

// Histories that earlier versions made must replay: a run that is under way when a worker is
// deployed goes on. If this fails, a change of the workflow is not compatible; give it a version
// (workflow.GetVersion, or a new type name) instead of changing the recorded history. A new path
// gets a new recording (CONTRIBUTING.md says how).
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
				DataConverter: workflows.DataConverter(), DisableDeadlockDetection: true, // which counts seconds without a processor
			})
			if err != nil {
				t.Fatal(err)
			}
			workflows.Register(r, nil)
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
