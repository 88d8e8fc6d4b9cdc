package workernode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// routing receives the messages of the sources in NATS, and takes the events of other systems to the
// runs that wait for them, and to the agents that have triggers for them.
type routing struct {
	router *events.Router
	agents *catalog.Watches
	bursts []*burst
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// startRouting opens the store of events, loads the waits and the agents, and routes events until stop,
// which the caller must call. It does not end with ctx. The receiver has all but its connection and what
// it does with messages.
func startRouting(
	ctx context.Context, d *dispatch.Dispatcher, snapshots *snapshot.Store, agents *catalog.Catalog, receiver *source.Receiver, logger *slog.Logger,
) (*routing, error) {
	kept, err := events.Open(ctx, d.Log)
	if err != nil {
		return nil, err
	}
	waits, err := kept.Watch(ctx)
	if err != nil {
		return nil, err
	}
	r := &routing{router: events.NewRouter(kept, waits)}
	if r.agents, err = agents.Watch(ctx); err != nil {
		waits.Stop()
		return nil, err
	}
	r.router.Decide, r.router.IsDecided, r.router.Trigger = decide(d, snapshots), isDecided(snapshots), trigger(d.Temporal, agents)
	r.router.OnError = r.burst(func(err error, count int) { logger.Warn("events are routed again", "error", err, "count", count) })
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.wait.Go(func() { r.router.Run(ctx) })
	receiver.Conn, receiver.Append = d.Log.Conn(), kept.Append
	receiver.OnError = r.burst(func(err error, count int) { logger.Warn("a source of events failed", "error", err, "count", count) })
	r.wait.Go(func() { receiver.Run(ctx) })
	return r, nil
}

// burst returns a function that reports errors, which may come with each event, as a burst.
func (r *routing) burst(report func(err error, count int)) func(error) {
	b := newBurst(report)
	r.bursts = append(r.bursts, b)
	return b.add
}

// receiver returns the receiver of the messages of sources, which are bound by rates and recorded like
// webhooks.
func receiver(sources *source.Set, rates *quota.Rates, w *store.Writer) *source.Receiver {
	return &source.Receiver{
		Sources: sources,
		TakeRate: func(sender auth.Principal) time.Duration {
			if exceeded, ok := errors.AsType[*quota.RateError](rates.Take(sender, true)); ok {
				return exceeded.Wait
			}
			return 0
		},
		Record: func(ctx context.Context, sender auth.Principal) error {
			return w.Record(ctx, store.OfTenant(sender.Tenant), audit.Entry{Action: audit.SendEvent, Outcome: audit.Accepted, Actor: audit.ActorOf(sender)})
		},
	}
}

// stop ends the routing and waits for it. r may be nil.
func (r *routing) stop() {
	if r == nil {
		return
	}
	r.cancel()
	r.wait.Wait()
	for _, b := range r.bursts {
		b.close()
	}
	r.router.Waits.Stop()
	r.agents.Stop()
}

// trigger returns the function that starts the runs of an event (see events.Router). Each is started by
// a workflow whose ID derives from the event and the trigger, so starting it again has no effect.
func trigger(temporal client.Client, agents *catalog.Catalog) func(context.Context, *events.Event, uint64) (matching, started int, err error) {
	return func(ctx context.Context, e *events.Event, seq uint64) (matching, started int, failed error) {
		// The event may have been sent because a trigger was just published.
		if err := agents.CatchUp(ctx); err != nil {
			return 0, 0, err
		}
		for _, agent := range agents.Triggered(e.Tenant, e.Type) {
			for i, t := range agent.Triggers {
				if t.Event != e.Type || !e.Matches(t.Match) {
					continue
				}
				in := runs.TriggerInput{Tenant: e.Tenant, Agent: agent.Name, Revision: agent.Revision, Trigger: i, Event: seq, EventDigest: e.Digest()}
				isNew, err := startTrigger(ctx, temporal, in)
				matching, failed = matching+1, errors.Join(failed, err)
				if isNew {
					started++
				}
			}
		}
		return matching, started, failed
	}
}

// startTrigger starts the workflow of a trigger. isNew is false if it was started before.
func startTrigger(ctx context.Context, temporal client.Client, in runs.TriggerInput) (isNew bool, err error) {
	_, err = temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("trigger/%s/%s/%d/%s/%d", stream.Token(in.Tenant), in.Agent, in.Trigger, in.EventDigest, in.Event), TaskQueue: runs.TaskQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
		Priority: runs.TenantPriority(stream.Token(in.Tenant)),
	}, runs.TypeTrigger, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return false, nil
	}
	return err == nil, err
}

// decide returns the function that sends a decision to the workflow of a thread (see events.Router). Only
// NotFound tells that the thread has no workflow. An execution that continues as new fails updates, and
// its waits stay open: the event must be attempted again.
func decide(d *dispatch.Dispatcher, snapshots *snapshot.Store) func(context.Context, stream.Thread, runs.Decision) (runs.DecisionResult, bool, error) {
	return func(ctx context.Context, t stream.Thread, decision runs.Decision) (runs.DecisionResult, bool, error) {
		update := func(in runs.DecideRequest, out *runs.DecideResult) error {
			return d.Update(ctx, t, "", runs.UpdateDecide, in, out)
		}
		isOpen := func(decision runs.Decision) (bool, error) {
			snap, err := snapshots.Latest(ctx, t, 0)
			return err == nil && snap.OpenInterrupt(decision.CallID, decision.Question) != nil, err
		}
		decided, err := dispatch.Decide([]runs.Decision{decision}, update, isOpen)
		if _, isMissing := errors.AsType[*serviceerror.NotFound](err); isMissing {
			return runs.DecisionResult{}, false, nil
		}
		if err != nil {
			return runs.DecisionResult{}, false, err
		}
		return decided.Results[0], true, nil
	}
}

// isDecided returns the function that looks for a decision in the log (see events.Router).
func isDecided(snapshots *snapshot.Store) func(context.Context, stream.Thread, runs.Decision) (bool, error) {
	return func(ctx context.Context, t stream.Thread, decision runs.Decision) (bool, error) {
		snap, err := snapshots.Latest(ctx, t, 0)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(snap.Decided, func(d stream.Decided) bool {
			return d.CallID == decision.CallID && d.Question == decision.Question && d.Digest == decision.Digest
		}), nil
	}
}
