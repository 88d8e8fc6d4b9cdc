package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register makes a worker run the workflows. Where the worker is versioned, a run stays on the
// version that began it.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(AgentRun, workflow.RegisterOptions{
		Name: TypeRun, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
}
