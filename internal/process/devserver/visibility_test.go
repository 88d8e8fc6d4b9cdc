package devserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// TestVisibilityIsComplete: the counts by status become those of the workflows, also of workflows
// that ended before Temporal wrote the row of their start.
func TestVisibilityIsComplete(t *testing.T) {
	t.Parallel()
	const short = 20
	s, ctx := mustStart(t, Options{Data: t.TempDir()}), testContext(t)
	c := mustDial(t, s)
	w := newWorker(c, func(context.Context) (int32, error) { return 1, nil })
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := c.ExecuteWorkflow(ctx, workflowOptions("thread/t/waiting"), signalWorkflow); err != nil {
		t.Fatal(err)
	}
	for i := range short {
		if _, err := runOne(ctx, c, fmt.Sprintf("thread/t/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	awaitCount(ctx, t, c, "ExecutionStatus = 'Completed'", short)
	awaitCount(ctx, t, c, "ExecutionStatus = 'Running'", 1)
	if err := c.SignalWorkflow(ctx, "thread/t/waiting", "", "tell", "x"); err != nil {
		t.Fatal(err)
	}
	awaitCount(ctx, t, c, "ExecutionStatus = 'Completed'", short+1)
	awaitCount(ctx, t, c, "ExecutionStatus = 'Running'", 0)
}

// awaitCount waits until a query counts n workflows.
func awaitCount(ctx context.Context, t *testing.T, c client.Client, query string, n int64) {
	t.Helper()
	query += " AND WorkflowId STARTS_WITH 'thread/'"
	for every := time.Tick(200 * time.Millisecond); ; {
		r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		if r.GetCount() == n {
			return
		}
		select {
		case <-every:
		case <-ctx.Done():
			t.Fatalf("%s: %d workflows, want %d", query, r.GetCount(), n)
		}
	}
}
