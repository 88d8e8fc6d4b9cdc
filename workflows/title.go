package workflows

import (
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// The title of a thread that a model writes is the work of a workflow of its own. So neither the end
// of the run nor the next run of the thread waits for it, and it goes on when the run continues as
// new or its thread is parked.

const (
	// titleTimeout bounds all attempts to write a title, titleAttempt bounds one.
	titleTimeout  = 2 * time.Minute
	titleAttempt  = 30 * time.Second
	titleAttempts = 3
)

// startTitle starts thread.title if the run begins a thread whose agent has a model for titles. It
// does not block. A cancel of the execution does not reach the workflow: the activity learns of a
// cancel of the run from the log.
func (t *thread) startTitle(ctx workflow.Context) {
	if !t.run.in.BeginsTitle {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            runs.TitleWorkflowID(workflow.GetInfo(ctx).WorkflowExecution.ID),
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON, // it outlives the run
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "title of the thread",
	})
	t.title = workflow.ExecuteChildWorkflow(ctx, runs.TypeTitle, runs.TitleInput{Step: t.run.ownStep("title"), Input: t.run.in.Input}).GetChildWorkflowExecution()
}

// awaitTitleStart blocks until thread.title has started: Temporal does not start the child of a
// closed execution. A start that fails is ignored, like a title that cannot be written.
func (t *thread) awaitTitleStart(ctx workflow.Context) {
	if t.title != nil {
		_ = t.title.Get(ctx, nil)
	}
}

// WriteTitle is thread.title.v1: it has a model write the title of a thread (title.write). It never
// fails: a thread without such a title shows the one that derives from its first message.
func WriteTitle(ctx workflow.Context, in runs.TitleInput) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: titleTimeout, StartToCloseTimeout: titleAttempt, HeartbeatTimeout: heartbeatTimeout,
		Summary: "title", RetryPolicy: retryPolicy(titleAttempts),
	})
	if err := workflow.ExecuteActivity(ctx, runs.ActivityWriteTitle, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("no model has written a title for the thread", in.Run.LogAttrs(in.Agent, "error", err)...)
	}
	return nil
}
