package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// notify makes known what has happened to calls that people decide about. Histories from before know
// nothing of it.
func (r *run) notify(ctx workflow.Context, w *Waits, event NoticeEvent, calls []Waiting) {
	if len(calls) == 0 || workflow.GetVersion(ctx, "notices", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: string(event),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	err := workflow.ExecuteActivity(ctx, ActivityNotify, Notice{
		Run: r.in.Run, Agent: r.in.Agent, Revision: r.in.Revision, Event: event, Opened: w.Opened, At: workflow.Now(ctx),
		MessageID: w.MessageID, Calls: calls, After: w.After,
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a notice was not given", "event", event, "error", err)
	}
}

// notifyOpened makes known that people are asked.
func (r *run) notifyOpened(ctx workflow.Context, w *Waits, after uint64) {
	w.After, w.Opened = after, workflow.Now(ctx)
	var calls []Waiting
	for _, c := range w.Calls {
		if c.Approval != nil {
			calls = append(calls, c)
		}
	}
	r.notify(ctx, w, NoticeOpened, calls)
}

// notifySettled makes known what was decided, and that nobody did in time.
func (r *run) notifySettled(ctx workflow.Context, w *Waits) {
	settled := map[NoticeEvent][]Waiting{}
	for _, c := range w.Calls {
		switch {
		case c.Approval == nil || c.Decision == nil:
		case c.Decision.Verdict == VerdictExpire:
			settled[NoticeExpired] = append(settled[NoticeExpired], c)
		default:
			settled[NoticeDecided] = append(settled[NoticeDecided], c)
		}
	}
	r.notify(ctx, w, NoticeDecided, settled[NoticeDecided])
	r.notify(ctx, w, NoticeExpired, settled[NoticeExpired])
}
