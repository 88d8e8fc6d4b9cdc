package workflows_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

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
			r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: workflows.DataConverter()})
			if err != nil {
				t.Fatal(err)
			}
			workflows.Register(r)
			if err := r.ReplayWorkflowHistoryFromJSONFile(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)), file); err != nil {
				t.Errorf("%s does not replay: %v", file, err)
			}
		})
	}
}
