package workernode

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// routing takes the events of other systems to the runs that wait for them, in one goroutine.
type routing struct {
	router *events.Router
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// startRouting opens the store of events, loads the waits, and routes events until stop, which the
// caller must call. It does not end with ctx.
func startRouting(ctx context.Context, l *stream.Log, d *dispatch.Dispatcher, snapshots *snapshot.Store, logger *slog.Logger) (*routing, error) {
	store, err := events.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	waits, err := store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	r := &routing{router: events.NewRouter(store, waits)}
	r.router.Decide, r.router.IsDecided = decide(d), isDecided(snapshots)
	r.router.OnError = func(err error) { logger.Warn("events are routed again", "error", err) }
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.wait.Go(func() { r.router.Run(ctx) })
	return r, nil
}

// stop ends the routing and waits for it. r may be nil.
func (r *routing) stop() {
	if r == nil {
		return
	}
	r.cancel()
	r.wait.Wait()
	r.router.Waits.Stop()
}

// decide returns the function that sends a decision to the workflow of a thread (see events.Router).
func decide(d *dispatch.Dispatcher) func(context.Context, stream.Thread, runs.Decision) (runs.DecisionResult, bool, error) {
	return func(ctx context.Context, t stream.Thread, decision runs.Decision) (runs.DecisionResult, bool, error) {
		var decided runs.DecideResult
		err := d.Update(ctx, t, "", runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{decision}}, &decided)
		var notFound *serviceerror.NotFound
		var refusal *temporal.ApplicationError
		switch {
		case errors.As(err, &notFound), errors.As(err, &refusal): // a workflow that is about to close refuses updates
			return runs.DecisionResult{}, false, nil
		case err != nil:
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
