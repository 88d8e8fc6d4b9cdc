package workernode

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// startDelivery returns a function that starts the delivery of an event to a webhook. A delivery is
// a workflow whose ID derives from the event, so starting it again has no effect.
func startDelivery(temporal client.Client) func(context.Context, runs.Delivery) error {
	return func(ctx context.Context, d runs.Delivery) error {
		_, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "webhook/" + stream.Token(d.Tenant) + "/" + d.Webhook + "/" + d.Event, TaskQueue: runs.TaskQueue,
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
			Priority: runs.TenantPriority(stream.Token(d.Tenant)),
		}, runs.TypeDelivery, d)
		var started *serviceerror.WorkflowExecutionAlreadyStarted
		if errors.As(err, &started) {
			return nil
		}
		return err
	}
}

// restorePause is the pause between two attempts to restore an index.
const restorePause = 10 * time.Second

// restoration restores indexes that were lost (deleted buckets) from the log, in one goroutine for
// each index.
type restoration struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// restore starts a restoration; the caller must call stop. It does not end with ctx.
func restore(ctx context.Context, logger *slog.Logger, indexes ...func(context.Context) error) *restoration {
	r := &restoration{}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, index := range indexes {
		r.wait.Go(func() { restoreIndex(ctx, logger, index) })
	}
	return r
}

// restoreIndex restores an index, and repeats that until it succeeds or ctx ends.
func restoreIndex(ctx context.Context, logger *slog.Logger, index func(context.Context) error) {
	for {
		err := index(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.WarnContext(ctx, "an index could not be restored from the log", "error", err)
		retry := time.NewTimer(restorePause)
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

// stop ends the restoration and waits for its goroutines.
func (r *restoration) stop() {
	r.cancel()
	r.wait.Wait()
}
