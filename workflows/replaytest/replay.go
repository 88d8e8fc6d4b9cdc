// Package replaytest replays recorded workflow histories. If a history does not replay, runs that
// are under way when a worker is deployed would stop.
package replaytest

import (
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// Replay replays the history in a JSON file with the workflows of this build. It is safe for
// concurrent use.
func Replay(file string) error {
	// The SDK's deadlock detection measures wall-clock time, which a busy machine exceeds.
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: runs.DataConverter(), DisableDeadlockDetection: true})
	if err != nil {
		return fmt.Errorf("replaytest: %w", err)
	}
	workflows.Register(r, programs)
	recorded, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("replaytest: %w", err)
	}
	defer func() { _ = recorded.Close() }()
	history, err := client.HistoryFromJSON(recorded, client.HistoryJSONOptions{})
	if err != nil {
		return fmt.Errorf("replaytest: %s: %w", file, err)
	}
	// IDs of children derive from the ID of their parent.
	id := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	logger := temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	err = r.ReplayWorkflowHistoryWithOptions(logger, history, worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
	if err != nil {
		return fmt.Errorf("replaytest: %s does not replay: %w", file, err)
	}
	return nil
}
