package workflows

import (
	"encoding/json"
	"slices"
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
func (r *run) takeResults(ctx workflow.Context) {
	r.results.come = workflow.GetSignalChannelWithOptions(ctx, SignalToolResult, workflow.SignalChannelOptions{
		Description: `say what came of a call of the client's: {"toolCallId", "content"}`,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var in ToolResult
			r.results.come.Receive(ctx, &in)
			r.takeResult(ctx, in)
		}
	})
}

// takeResult takes a result that is waited for. Nobody hears an answer to a signal: what is unknown, too
// large, no content or not the first changes nothing.
func (r *run) takeResult(ctx workflow.Context, in ToolResult) {
	r.results.busy = true
	defer func() { r.results.busy = false }()
	r.awaitMoved(ctx)
	c := r.interruptsOf(in.CallID).find(in.CallID)
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
	if err := workflow.ExecuteActivity(ctx, ActivityKeep, Keep{Run: r.in.Run}, in).Get(ctx, &d); err != nil {
		workflow.GetLogger(ctx).Warn("a signaled tool result is invalid and was ignored", r.in.Run.logged(r.in.Agent, "error", err)...)
		return
	}
	r.awaitMoved(ctx)
	r.interruptsOf(in.CallID).decide(d, workflow.Now(ctx))
}

// awaitMoved waits while questions go to the end of the run: those of branches that have ended by then are nowhere else.
func (r *run) awaitMoved(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return !r.moving })
}

// hear waits until no result is on its way: who continues as new would lose it. It fails if the run is
// cancelled.
func (r *run) hear(ctx workflow.Context) bool {
	return workflow.Await(ctx, func() bool { return !r.results.busy && r.results.come.Len() == 0 }) == nil
}

// interruptsOf are those that a decision about a call is for.
func (r *run) interruptsOf(callID string) *Waits {
	return r.interrupts.find(callID, r.in.Resume, r.isCancelled() && !r.undoes())
}

// waitsBehind is what the thread waits for behind an end: answers to questions and, where its agent says
// what becomes of the next input, results of the client's calls. Those are given up for a run that waits
// already.
func (r *run) waitsBehind(end ending) *Waits {
	switch {
	case end.outcome == OutcomeInterrupt, end.outcome == OutcomeSuccess && end.waits != nil && end.waits.asks():
		return end.waits // people may have answered all of it while the run came to its end
	case end.outcome != OutcomeSuccess, r.in.OnMissing == "", r.in.OnMissing == OnOpenAbandon && len(r.queue) > 0:
		return nil
	}
	return end.waits
}

// onOpen says what becomes of an offer that leaves some of the calls open; OnOpenAbandon if it leaves none.
func (r *run) onOpen(in Submit) OnOpen {
	open, asks := r.interrupts.afterEnd.open(in.Decisions...)
	then := r.in.OnMissing
	if asks {
		then = r.in.OnNewInput
	}
	switch {
	case len(open) == 0, !asks && (then == "" || then == OnOpenAbandon):
		return OnOpenAbandon
	case in.OnBusy == OnBusyEnqueue, in.OnBusy == "" && then == OnOpenQueue:
		return OnOpenQueue
	}
	return OnOpenReject
}

// frees tells whether nothing has to be carried on behind an offer: it answers or gives up all that the
// thread waits for, calls of the client's without any result so far. Then the workflow closes and the run is
// started anew: Temporal holds back who continues as new within a second, and clients are quicker.
func (r *run) frees(in Submit) bool {
	mine := func(c Waiting) bool { return !c.Client || c.Decision != nil }
	return in.Offer != nil && r.resumed == nil && len(r.queue) == 0 && r.onOpen(in) == OnOpenAbandon && !slices.ContainsFunc(r.interrupts.afterEnd.Calls, mine)
}

// refusal tells why an offer is refused that leaves calls open.
func (r *run) refusal(in Submit) error {
	open, asks := r.interrupts.afterEnd.open(in.Decisions...)
	if asks || in.Offer == nil {
		return temporal.NewApplicationError("the thread waits for decisions", ErrorInterrupted, Active{RunID: r.in.Run.ID, Waiting: open})
	}
	return temporal.NewApplicationError("the thread waits for results", ErrorMissingResults, Active{RunID: r.in.Run.ID, Waiting: open})
}

// bring notes that an input has a result itself that was taken before: it stands in the conversation.
func (w *Waits) bring(d Decision) {
	c := w.find(d.CallID)
	if d.Verdict == VerdictResult && c.Decision != nil && c.Decision.Verdict == VerdictResult && c.Decision.Digest == d.Digest {
		c.Decision.Input = d.Input
	}
}
