package devserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// busyTasks are the activities of one tenant that wait in the task queue.
const busyTasks = 40

// parentWorkflow executes the activity in a child workflow.
func parentWorkflow(ctx workflow.Context) error {
	return workflow.ExecuteChildWorkflow(ctx, attemptWorkflow).Get(ctx, nil)
}

// TestTenantsTakeTurns: while many activities of one tenant wait for a worker, an activity of another
// tenant, of a child workflow that was started later, does not wait for all of them. Workflows pass
// the priority of their tenant on to child workflows and activities.
func TestTenantsTakeTurns(t *testing.T) {
	c := mustDial(t, mustStart(t, Options{Data: t.TempDir()}))
	scheduler := worker.New(c, taskQueue, worker.Options{LocalActivityWorkerOnly: true})
	scheduler.RegisterWorkflow(attemptWorkflow)
	scheduler.RegisterWorkflow(parentWorkflow)
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	defer scheduler.Stop()
	start := func(tenant, id string, w any) {
		o := workflowOptions("thread/" + tenant + "/" + id)
		o.Priority = runs.TenantPriority(tenant)
		if _, err := c.ExecuteWorkflow(t.Context(), o, w); err != nil {
			t.Fatal(err)
		}
	}
	for i := range busyTasks {
		start("busy", fmt.Sprint(i), attemptWorkflow)
	}
	awaitBacklog(t, c, busyTasks)
	start("quiet", "0", parentWorkflow)
	awaitBacklog(t, c, busyTasks+1)

	tenants := make(chan string, busyTasks+1)
	executor := worker.New(c, taskQueue, worker.Options{DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: 1})
	executor.RegisterActivityWithOptions(func(ctx context.Context) (int32, error) {
		tenants <- activity.GetInfo(ctx).Priority.FairnessKey
		return 0, nil
	}, activity.RegisterOptions{Name: "attempt"})
	if err := executor.Start(); err != nil {
		t.Fatal(err)
	}
	defer executor.Stop()
	var order []string
	for range busyTasks + 1 {
		select {
		case tenant := <-tenants:
			order = append(order, tenant)
		case <-time.After(patience):
			t.Fatalf("only %d activities were executed", len(order))
		}
	}
	if at := slices.Index(order, "quiet"); at < 0 || at > busyTasks/4 {
		t.Errorf("the activity of the other tenant was number %d of %d, want one of the first: %s", at+1, len(order), strings.Join(order, " "))
	}
}

// awaitBacklog waits until n activities wait in the task queue.
func awaitBacklog(t *testing.T, c client.Client, n int64) {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := c.DescribeTaskQueueEnhanced(ctx, client.DescribeTaskQueueEnhancedOptions{
			TaskQueue: taskQueue, TaskQueueTypes: []client.TaskQueueType{client.TaskQueueTypeActivity}, ReportStats: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		var waiting int64
		for _, v := range d.VersionsInfo { //nolint:staticcheck // because the SDK has no other form of these figures
			waiting += v.TypesInfo[client.TaskQueueTypeActivity].Stats.ApproximateBacklogCount
		}
		if waiting >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d activities wait, want %d", waiting, n)
		}
	}
}
