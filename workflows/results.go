package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// receiveResults starts the coroutine that receives tool results by signal, and stores one after
// the other. It does not block.
func (t *thread) receiveResults(ctx workflow.Context) {
	t.results.signals = workflow.GetSignalChannelWithOptions(ctx, runs.SignalToolResult, workflow.SignalChannelOptions{
		Description: `submit the result of a client tool call: {"toolCallId", "content"}`,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var in runs.ToolResult
			t.results.signals.Receive(ctx, &in)
			t.storeResult(ctx, in)
		}
	})
}

// storeResult stores a result in the log (tool.result), and takes it as a decision about its client
// tool call. A signal has no answer: a result that is unknown, too large, malformed or not the
// first is ignored. It blocks until the result is stored, also in a cancelled run.
func (t *thread) storeResult(ctx workflow.Context, in runs.ToolResult) {
	t.results.busy = true
	defer func() { t.results.busy = false }()
	t.awaitDecidable(ctx)
	i := t.run.interruptsOf(in.CallID).Find(in.CallID)
	body, err := runs.Encode(in) //workflowcheck:ignore the same value gives the same text
	if i == nil || !i.Client || i.Decision != nil || err != nil || len(body) > runs.MaxPayload {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeatTimeout, Summary: "record tool result",
		RetryPolicy: retryPolicy(0),
	})
	var d runs.Decision
	if err := workflow.ExecuteActivity(ctx, runs.ActivityStoreToolResult, runs.StoreResult{Run: t.run.in.Run}, in).Get(ctx, &d); err != nil {
		workflow.GetLogger(ctx).Warn("an invalid tool result in a signal is ignored", t.run.in.Run.LogAttrs(t.run.in.Agent, "error", err)...)
		return
	}
	// Children may have begun to end while the activity stored the result.
	t.awaitDecidable(ctx)
	t.run.interruptsOf(in.CallID).Decide(d, workflow.Now(ctx))
}

// awaitDecidable blocks while children end with their interrupts: until the run has ended, the
// thread does not have these.
func (t *thread) awaitDecidable(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return t.phase.takesDecisions() })
}

// awaitResults blocks until every result that has arrived is stored: an execution that continued as
// new before would lose it. ok is false if ctx ends first.
func (t *thread) awaitResults(ctx workflow.Context) (ok bool) {
	return workflow.Await(ctx, func() bool { return !t.results.busy && t.results.signals.Len() == 0 }) == nil
}
