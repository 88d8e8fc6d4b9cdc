package workflows_test

import (
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/workflows/replaytest"
)

// TestRecordedHistoriesReplay fails if a change of workflow code is not compatible with running
// workflows. CONTRIBUTING.md says what to do then, and how to record the histories.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replay/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("recorded histories: got %d (%v), want some", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if err := replaytest.Replay(file); err != nil {
				t.Error(err)
			}
		})
	}
}
