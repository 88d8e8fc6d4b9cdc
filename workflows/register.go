package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// Register registers the workflow types of this package with a worker, and the worker's programs.
// It is called once for each worker, before the worker starts.
//
// With Worker Versioning, agent.run and agent.child are pinned: a run stays on the version that
// began it until it continues as new. The other types follow the current version, so their code
// must replay the histories of earlier versions.
func Register(r worker.WorkflowRegistry, programs Programs) {
	r.RegisterWorkflowWithOptions(programs.AgentRun, workflow.RegisterOptions{
		Name: runs.TypeRun, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
	r.RegisterWorkflowWithOptions(programs.AgentChild, workflow.RegisterOptions{
		Name: runs.TypeChild, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
	r.RegisterWorkflowWithOptions(ThreadParked, workflow.RegisterOptions{
		Name: runs.TypeParked, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(SendNotifications, workflow.RegisterOptions{
		Name: runs.TypeNotifications, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(WriteTitle, workflow.RegisterOptions{
		Name: runs.TypeTitle, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(Deliver, workflow.RegisterOptions{
		Name: runs.TypeDelivery, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(ScheduleFire, workflow.RegisterOptions{
		Name: runs.TypeFiring, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(TriggerRun, workflow.RegisterOptions{
		Name: runs.TypeTrigger, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
}
