package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// TriggerRun is event.trigger.v1: it starts the run that an event triggers, once. It ends when the
// thread has taken or refused the run, with the reason in the result, and fails if the run cannot
// begin: its agent, its service or the event is gone, or a template has no value for the event.
func TriggerRun(ctx workflow.Context, in runs.TriggerInput) (started runs.FiredRun, err error) {
	err = workflow.ExecuteActivity(withRetries(ctx, "begin"), runs.ActivityTriggerRun, in).Get(ctx, &started)
	return started, err
}
