package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/agents"
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
