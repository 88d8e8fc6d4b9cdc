package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// takeResults takes the tool results that arrive by signal, one after the other.
func (t *thread) takeResults(ctx workflow.Context) {
	t.results.come = workflow.GetSignalChannelWithOptions(ctx, runs.SignalToolResult, workflow.SignalChannelOptions{
		Description: `say what came of a call of the client's: {"toolCallId", "content"}`,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var in runs.ToolResult
			t.results.come.Receive(ctx, &in)
			t.takeResult(ctx, in)
		}
	})
}

// takeResult stores a result that the thread waits for, and takes it as a decision. A signal has no
// answer: a result that is unknown, too large, malformed or not the first is ignored.
func (t *thread) takeResult(ctx workflow.Context, in runs.ToolResult) {
	t.results.busy = true
	defer func() { t.results.busy = false }()
	t.awaitDecidable(ctx)
	c := t.run.interruptsOf(in.CallID).Find(in.CallID)
	body, err := runs.Encode(in) //workflowcheck:ignore the same value gives the same text
	if c == nil || !c.Client || c.Decision != nil || err != nil || len(body) > runs.MaxPayload {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeatTimeout, Summary: "keep a result",
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
	var d runs.Decision
	if err := workflow.ExecuteActivity(ctx, runs.ActivityStoreResult, runs.StoreResult{Run: t.run.in.Run}, in).Get(ctx, &d); err != nil {
		workflow.GetLogger(ctx).Warn("a signaled tool result is invalid and was ignored", t.run.in.Run.LogAttrs(t.run.in.Agent, "error", err)...)
		return
	}
	t.awaitDecidable(ctx)
	t.run.interruptsOf(in.CallID).Decide(d, workflow.Now(ctx))
}

// awaitDecidable waits while children end with their interrupts: until the run has ended, these are
// nowhere else.
func (t *thread) awaitDecidable(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return t.phase.takesDecisions() })
}

// awaitResults waits until no result is on its way into the log: an execution that continued as new
// would lose it. ok is false if the run is cancelled.
func (t *thread) awaitResults(ctx workflow.Context) (ok bool) {
	return workflow.Await(ctx, func() bool { return !t.results.busy && t.results.come.Len() == 0 }) == nil
}

// interruptsOf returns the interrupts that have the call of a decision; nil = none.
func (r *run) interruptsOf(callID string) *runs.Interrupts {
	return r.interrupts.find(callID, r.in.Resume, r.isCancelled() && !r.isCompensating())
}
