package devserver

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"
)

const (
	// childDir is the environment variable that turns the test binary into a
	// process that runs one activity forever over the named directory.
	childDir = "DEVSERVER_TEST_CHILD"

	taskQueue = "test"

	// patience is how long a test waits for an expected event. It is far below the heartbeat
	// timeout of the activities in these tests.
	patience = 20 * time.Second
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir))
	}
	if dir := os.Getenv(cacheChildDir); dir != "" {
		if err := runCacheChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, temporalLeaks()...)
}

// runChild starts a server over dir and two workflows. It prints a line when the local activity of
// the first and the activity of the second run. It does not return: its parent kills the process.
func runChild(dir string) int {
	ctx := context.Background()
	s, err := Start(ctx, Options{Data: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := dial(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	within := make(chan struct{})
	w := newWorker(c, func(ctx context.Context) (int32, error) {
		if activity.GetInfo(ctx).IsLocalActivity {
			close(within)
			select {}
		}
		fmt.Println(activity.GetInfo(ctx).Attempt)
		select {}
	})
	if err := w.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := workflowOptions("thread/t/task")
	o.WorkflowTaskTimeout = time.Minute // the test would fail if it waited for that
	if _, err := c.ExecuteWorkflow(ctx, o, localWorkflow); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-within
	if _, err := c.ExecuteWorkflow(ctx, workflowOptions("thread/t/killed"), attemptWorkflow); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

// attemptWorkflow returns the attempt on which its activity succeeded.
func attemptWorkflow(ctx workflow.Context) (attempt int32, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    30 * time.Second,
		// The test would fail if it waited for this backoff.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Hour, MaximumInterval: time.Hour},
	})
	err = workflow.ExecuteActivity(ctx, "attempt").Get(ctx, &attempt)
	return attempt, err
}

// localWorkflow executes its activity within its workflow task.
func localWorkflow(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Hour})
	return workflow.ExecuteLocalActivity(ctx, "attempt").Get(ctx, nil)
}

// signalWorkflow returns the value of the signal "tell".
func signalWorkflow(ctx workflow.Context) (value string, err error) {
	workflow.GetSignalChannel(ctx, "tell").Receive(ctx, &value)
	return value, nil
}

// newWorker returns a worker with the test's workflows and an activity.
func newWorker(c client.Client, attempt func(context.Context) (int32, error)) worker.Worker {
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(attemptWorkflow)
	w.RegisterWorkflow(localWorkflow)
	w.RegisterWorkflow(signalWorkflow)
	w.RegisterActivityWithOptions(attempt, activity.RegisterOptions{Name: "attempt"})
	return w
}

// workflowOptions returns options of a workflow.
func workflowOptions(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue, WorkflowTaskTimeout: 5 * time.Second}
}

// dial connects to a server.
func dial(ctx context.Context, s *Server) (client.Client, error) {
	return client.DialContext(ctx, client.Options{
		HostPort:  s.TemporalAddress(),
		Namespace: s.Namespace(),
		Logger:    sdklog.NewStructuredLogger(discard),
	})
}

// testContext returns a context with a time limit.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	t.Cleanup(cancel)
	return ctx
}

// mustStart starts a server that stops with the test at the latest.
func mustStart(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustStop(t, s) })
	return s
}

// mustStop stops a server.
func mustStop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// mustDial connects to a server until the test ends.
func mustDial(t *testing.T, s *Server) client.Client {
	t.Helper()
	c, err := dial(testContext(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// temporalLeaks returns the goroutines that remain after a Temporal server stops: its connections
// between services, which it never closes, and its pool of database connections, which exists as
// long as the process.
func temporalLeaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
		goleak.IgnoreTopFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"),
		goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"),
	}
}
