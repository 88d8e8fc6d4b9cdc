package devserver

import (
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// againWorkflow continues as new once, immediately.
func againWorkflow(ctx workflow.Context, again bool) error {
	if again {
		return workflow.NewContinueAsNewError(ctx, againWorkflow, false)
	}
	return nil
}

// TestContinuedWorkflowStartsAtOnce: Temporal adds no delay before the first task of a workflow
// that continues a workflow younger than a second. A workflow ID can be reused immediately.
func TestContinuedWorkflowStartsAtOnce(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := mustDial(t, mustStart(t, Options{Data: t.TempDir()}))
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(againWorkflow)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	const id = "thread/t/again"
	for range 3 { // the second and third start follow an execution that began moments ago
		run, err := c.ExecuteWorkflow(ctx, workflowOptions(id), againWorkflow, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Get(ctx, nil); err != nil {
			t.Fatal(err)
		}
		events := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT) // of the latest execution
		first, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		started := first.GetWorkflowExecutionStartedEventAttributes()
		if started.GetContinuedExecutionRunId() == "" {
			t.Fatal("latest execution continues no other one, want the first")
		}
		if backoff := started.GetFirstWorkflowTaskBackoff().AsDuration(); backoff != 0 {
			t.Errorf("the first workflow task waits %v, want 0", backoff)
		}
	}
}

// TestShippedDynamicConfig: the dynamic configuration for a Temporal cluster contains every setting
// of perdure dev that affects the behavior of runs. Settings for one process on SQLite are in
// perdure dev alone.
func TestShippedDynamicConfig(t *testing.T) {
	t.Parallel()
	over := make(chan any)
	defer close(over)
	file, err := dynamicconfig.NewFileBasedClient(&dynamicconfig.FileBasedClientConfig{
		Filepath: filepath.Join("..", "..", "..", "deploy", "temporal", "dynamicconfig.yaml"), PollInterval: time.Hour,
	}, log.NewNoopLogger(), over)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]dynamicconfig.Client{"file": file, "embedded": dynamicConfig(Options{})} {
		c := dynamicconfig.NewCollection(client, log.NewNoopLogger())
		if got := dynamicconfig.WorkflowIdReuseMinimalInterval.Get(c)("default"); got != 0 {
			t.Errorf("%s: a workflow ID can be used again after %v, want 0", name, got)
		}
		if got := dynamicconfig.TimerProcessorMaxTimeShift.Get(c)(); got != 10*time.Millisecond {
			t.Errorf("%s: timers may be %v late, want 10ms", name, got)
		}
		if !dynamicconfig.EnableCancelWorkerPollsOnShutdown.Get(c)("default") {
			t.Errorf("%s: cancel of polls of a stopping worker = false, want true", name)
		}
	}
}
