package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A workflow task may be lost after steps were executed in it: its worker dies, or the workflow ends in
// it while a cancel arrives. Temporal repeats the task, and each step finds its record. But the
// repeated task may have what the lost one had not: a cancel, or the passing of a deadline. A pipeline
// must compensate for all that the lost task has done, and a thread waits for the interrupts with which
// that task has ended its run. So a run does not stop where it notices the cancel, but where the log has
// no further step:
//
//	lost task      advance ──► call ──► advance ──► call
//	repeated task  advance ──► call ──► advance ──► call ──► nothing later in the log: the pipeline stops
//
// executeStep, through which all steps go, asks the log. Where the workflow decides without a step, it
// asks isLogAhead.

// errNotBegun is the error of a step that was not executed, because the run stops and the log has
// nothing of the step.
var errNotBegun = errors.New("workflows: the run stops before this step")

// isStopping reports whether a cancelled run begins no step: it only takes over those that the log has.
func (r *run) isStopping(ctx workflow.Context) bool { return !r.isCompensating() && ctx.Err() != nil }

// isStoppingOrOverdue is isStopping, and for pipelines also true after the deadline.
func (r *run) isStoppingOrOverdue(ctx workflow.Context) bool {
	return r.isStopping(ctx) || r.pipeline.position != nil && !r.isCompensating() && r.isOverdue(ctx)
}

// takesOver reports whether a run that has to stop first takes over steps that the log has.
func (r *run) takesOver(ctx workflow.Context) bool {
	return r.isStoppingOrOverdue(ctx) && r.isLogAhead(ctx, nil)
}

// isLogAhead reports whether the agent's lane, or that of a tool call (nil = none), has records of which
// this execution does not know. It is also true if the log is unavailable for 5 s. It works although
// ctx is cancelled.
func (r *run) isLogAhead(ctx workflow.Context, call *runs.CallLane) bool {
	isAhead, err := checkLog(ctx, runs.LogCheck{Step: r.ownStep("ahead"), Call: call})
	return isAhead || err != nil
}

// hasAdvanced reports whether the log has the next advance of a pipeline that has to stop after a step or
// call that failed: a lost workflow task has made it. isLogAhead would also find the records of the failed
// step.
func (p pipelineExecutor) hasAdvanced(ctx workflow.Context) bool {
	hasFailed := p.run.log.Failed != nil || len(p.run.log.Unfinished) > 0
	if !hasFailed || !p.run.isStoppingOrOverdue(ctx) {
		return false
	}
	isDone, err := checkLog(ctx, runs.LogCheck{Step: p.nextStep(), Done: true})
	return isDone && err == nil
}

// checkLog answers a question about the log, with an error if the log is unavailable for 5 s.
func checkLog(ctx workflow.Context, in runs.LogCheck) (answer bool, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 5 * time.Second, RetryPolicy: retryPolicy(0), Summary: "is the log ahead?",
	})
	err = workflow.ExecuteLocalActivity(ctx, runs.ActivityIsLogAhead, in).Get(ctx, &answer)
	return answer, err
}
