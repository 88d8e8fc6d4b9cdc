package devserver

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// TestKilledWorkerIsReplacedAtOnce kills a process during an activity and during a workflow task, and
// expects the second attempts long before the 30 s heartbeat timeout, the policy's backoff of an
// hour, and the timeout of a minute of the workflow task.
func TestKilledWorkerIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := t.TempDir()
	killChild(t, dir)

	begin := time.Now()
	s := mustStart(t, Options{Data: dir})
	c := mustDial(t, s)
	orphans := s.Orphans()
	if len(orphans) != 2 || orphans[0].WorkflowID != "thread/t/killed" || orphans[0].Type != "attempt" || orphans[0].Attempt != 1 {
		t.Fatalf("Orphans = %+v, want attempt 1 of thread/t/killed, and another one", orphans)
	}
	if o := orphans[1]; o.WorkflowID != "thread/t/task" || o.ActivityID != "" || o.Attempt != 1 {
		t.Fatalf("second orphan = %+v, want the workflow task of thread/t/task", o)
	}
	if n, err := FailOrphans(ctx, c, orphans); n != 2 || err != nil {
		t.Fatalf("FailOrphans = %d, %v; want 2", n, err)
	}

	started, finish, again := make(chan int32, 1), make(chan struct{}), make(chan struct{})
	w := newWorker(c, func(ctx context.Context) (int32, error) {
		if activity.GetInfo(ctx).IsLocalActivity {
			close(again)
			return 1, nil
		}
		started <- activity.GetInfo(ctx).Attempt
		<-finish
		return activity.GetInfo(ctx).Attempt, nil
	})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case attempt := <-started:
		t.Logf("attempt %d began %v after Start was called", attempt, time.Since(begin))
		if attempt != 2 {
			t.Errorf("attempt = %d, want 2", attempt)
		}
	case <-time.After(patience):
		close(finish)
		t.Fatal("no second attempt")
	}
	select {
	case <-again:
	case <-time.After(patience):
		close(finish)
		t.Fatal("the workflow task is not repeated")
	}
	expectWorkerLost(t, s)

	// While the second attempt runs, the first attempt's orphan is stale, and failing it must not
	// affect the second attempt.
	if n, err := FailOrphans(ctx, c, orphans); n != 0 || err != nil {
		t.Errorf("FailOrphans with a stale list = %d, %v; want 0", n, err)
	}
	close(finish)
	var attempt int32
	if err := c.GetWorkflow(ctx, "thread/t/killed", "").Get(ctx, &attempt); err != nil || attempt != 2 {
		t.Errorf("workflow = %d, %v; want 2", attempt, err)
	}
	// The workflow is closed by now.
	if n, err := FailOrphans(ctx, c, orphans); n != 0 || err != nil {
		t.Errorf("FailOrphans of a closed workflow = %d, %v; want 0", n, err)
	}
}

// killChild starts a server over dir in another process, waits until its activity runs, checks that
// a second server is refused, and kills the process.
func killChild(t *testing.T, dir string) {
	t.Helper()
	child := exec.CommandContext(testContext(t), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "1\n" {
		t.Errorf("child's output: got %q, %v; want attempt 1", line, err)
	}
	_, err = Start(testContext(t), Options{Data: dir})
	if locked, ok := errors.AsType[*LockedError](err); !ok || locked.PID != child.Process.Pid {
		t.Errorf("Start while the child runs: got %v, want a LockedError with its pid %d", err, child.Process.Pid)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // "signal: killed"
}

// expectWorkerLost checks that the attempt of a killed worker has failed.
func expectWorkerLost(t *testing.T, s *Server) {
	t.Helper()
	desc, err := mustDial(t, s).DescribeWorkflowExecution(testContext(t), "thread/t/killed", "")
	if err != nil {
		t.Fatal(err)
	}
	pending := desc.GetPendingActivities()
	if len(pending) != 1 || pending[0].GetLastFailure().GetApplicationFailureInfo().GetType() != runs.ErrorWorkerLost {
		t.Errorf("pending activities: got %v, want one activity whose last failure is %s", pending, runs.ErrorWorkerLost)
	}
}
