package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/runs"
)

func init() {
	sendBeat = func(ctx context.Context, failures int) error {
		activity.RecordHeartbeat(ctx, failures)
		return nil
	}
}

// ContextAfter is contextAfter, for a test of its own: a long outage is too long for a test of a
// run.
var ContextAfter = contextAfter

// NewSmallFileStore is NewFileStore with room for a number of bytes.
func NewSmallFileStore(s *files.Store, room int64) FileStore {
	return FileStore{s, semaphore.NewWeighted(room)}
}

// TakeRoom returns when requests have so many bytes less of the memory for files.
func (f FileStore) TakeRoom(ctx context.Context, bytes int64) error {
	return f.room.Acquire(ctx, bytes)
}

// InboxArgs is inboxArgs.
var InboxArgs = inboxArgs

// OfferedSubagents returns the names of the subagents that the model of a step is offered.
func (a *Activities) OfferedSubagents(ctx context.Context, d *agents.Definition, s runs.Step) ([]string, error) {
	all, err := a.subagents(ctx, d, s)
	var names []string
	for _, s := range all {
		names = append(names, s.Agent)
	}
	return names, err
}
