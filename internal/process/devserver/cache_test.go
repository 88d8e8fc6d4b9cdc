package devserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// cacheChildDir is the environment variable that turns the test binary into a process that fills
// the workflow cache over the named directory.
const cacheChildDir = "DEVSERVER_TEST_CACHE"

// TestWorkflowCacheIsBounded: the option applies to workers that start after the server, although
// they share the cache of the server's own workers. It needs a process in which no worker has run.
func TestWorkflowCacheIsBounded(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(testContext(t), os.Args[0])
	cmd.Env = append(os.Environ(), cacheChildDir+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// runCacheChild starts more waiting workflows than the cache has room for, and returns an error
// unless the others leave the memory.
func runCacheChild(dir string) error {
	const room, workflows = 2, 6
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := Start(ctx, Options{Data: dir, WorkflowCache: room})
	if err != nil {
		return err
	}
	c, err := dial(ctx, s)
	if err != nil {
		return err
	}
	w := newWorker(c, func(context.Context) (int32, error) { return 0, nil })
	if err := w.Start(); err != nil {
		return err
	}
	for i := range workflows {
		run, err := c.ExecuteWorkflow(ctx, workflowOptions(fmt.Sprintf("thread/t/%d", i)), signalWorkflow)
		if err != nil {
			return err
		}
		if err := awaitFirstTask(ctx, c, run); err != nil {
			return err
		}
	}
	for every := time.Tick(10 * time.Millisecond); coroutines() > room; {
		select {
		case <-every:
		case <-ctx.Done():
			return fmt.Errorf("%d workflows in memory, want at most %d", coroutines(), room)
		}
	}
	return nil
}

// awaitFirstTask waits until the first task of a workflow is complete.
func awaitFirstTask(ctx context.Context, c client.Client, run client.WorkflowRun) error {
	events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for {
		e, err := events.Next()
		if err != nil || e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return err
		}
	}
}

// coroutines returns the number of goroutines of workflows. Each workflow of this test has one.
func coroutines() int {
	stacks := make([]byte, 8<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("(*coroutineState).run("))
}
