package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// ToolResult is what SignalToolResult carries, for whoever has nothing but Temporal's own tools: what came
// of a call of the client's. It is the one content that enters a history, at most MaxPayload of it; an
// activity puts it into the log, and from there on it is a decision like any other.
type ToolResult struct {
	CallID string `json:"toolCallId"`
	// Content is a text, or parts as AG-UI has them.
	Content json.RawMessage `json:"content"`
	// Error says why the call failed, if it did.
	Error json.RawMessage `json:"error,omitempty"`
}

// results are those that came by signal.
type results struct {
	come workflow.ReceiveChannel
	busy bool // one is on its way into the log
}

// takeResults takes the results that come by signal, one after the other.
func (t *thread) takeResults(ctx workflow.Context) {
	t.results.come = workflow.GetSignalChannelWithOptions(ctx, SignalToolResult, workflow.SignalChannelOptions{
		Description: `say what came of a call of the client's: {"toolCallId", "content"}`,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var in ToolResult
			t.results.come.Receive(ctx, &in)
			t.takeResult(ctx, in)
		}
	})
}

// takeResult takes a result that is waited for. Nobody hears an answer to a signal: what is unknown, too
// large, no content or not the first changes nothing.
func (t *thread) takeResult(ctx workflow.Context, in ToolResult) {
	t.results.busy = true
	defer func() { t.results.busy = false }()
	t.awaitDecidable(ctx)
	c := t.run.interruptsOf(in.CallID).find(in.CallID)
	body, err := encode(in) //workflowcheck:ignore the same value gives the same text
	if c == nil || !c.Client || c.Decision != nil || err != nil || len(body) > MaxPayload {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeatTimeout, Summary: "keep a result",
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
	var d Decision
	if err := workflow.ExecuteActivity(ctx, ActivityStoreResult, StoreResult{Run: t.run.in.Run}, in).Get(ctx, &d); err != nil {
		workflow.GetLogger(ctx).Warn("a signaled tool result is invalid and was ignored", t.run.in.Run.logged(t.run.in.Agent, "error", err)...)
		return
	}
	t.awaitDecidable(ctx)
	t.run.interruptsOf(in.CallID).decide(d, workflow.Now(ctx))
}

// awaitDecidable waits while children end with their interrupts: until the run has ended, these are nowhere else.
func (t *thread) awaitDecidable(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return t.phase.takesDecisions() })
}

// awaitResults waits until no result is on its way into the log: an execution that continued as new would lose it. ok is
// false if the run is cancelled.
func (t *thread) awaitResults(ctx workflow.Context) (ok bool) {
	return workflow.Await(ctx, func() bool { return !t.results.busy && t.results.come.Len() == 0 }) == nil
}

// interruptsOf are those that a decision about a call is for.
func (r *run) interruptsOf(callID string) *Interrupts {
	return r.interrupts.find(callID, r.in.Resume, r.isCancelled() && !r.isCompensating())
}

// noteDelivered notes that an input has a result itself that was taken before: it stands in the conversation.
func (w *Interrupts) noteDelivered(d Decision) {
	c := w.find(d.CallID)
	if d.Kind == DecisionToolResult && c.Decision != nil && c.Decision.Kind == DecisionToolResult && c.Decision.Digest == d.Digest {
		c.Decision.Input = d.Input
	}
}
