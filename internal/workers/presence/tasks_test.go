package presence_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/stream/streamtest"
)

// workflowTask returns Temporal's answer to a poll: a workflow task of an execution.
func workflowTask(runID, token string) *workflowservice.PollWorkflowTaskQueueResponse {
	return &workflowservice.PollWorkflowTaskQueueResponse{TaskToken: []byte(token), WorkflowExecution: &commonpb.WorkflowExecution{RunId: runID}}
}

// call makes a call of a worker to Temporal through the interceptor.
func call(t *testing.T, tasks *presence.Tasks, request, answer proto.Message, failure error) {
	t.Helper()
	reply := proto.Clone(answer)
	proto.Reset(reply)
	err := tasks.Intercept(t.Context(), "method", request, reply, nil, func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		proto.Merge(reply.(proto.Message), answer)
		return failure
	})
	if !errors.Is(err, failure) {
		t.Fatalf("Intercept: got %v, want %v", err, failure)
	}
}

// TestWorkflowTasks: the workflow tasks that a worker receives in any way are recorded until it has
// completed or failed them. A worker that dies leaves the others to be failed as workflow tasks.
func TestWorkflowTasks(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	fails := make(chan presence.Task, 10)
	fail := func(_ context.Context, _ string, task presence.Task) error { fails <- task; return nil }
	ended := make(chan presence.Poller, 10)
	temporal := presence.Temporal{
		Fail: fail, Sweep: func(context.Context, string) (int, error) { return 0, nil },
		Shutdown: func(_ context.Context, _ string, dead presence.Poller) error { ended <- dead; return nil },
	}
	survivor, err := presence.Start(t.Context(), streamtest.OpenOn(t, s), "survivor", presence.NewTasks(), temporal, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = survivor.Stop(context.Background()) })
	log, tasks := streamtest.OpenOn(t, s), presence.NewTasks()
	victim, err := presence.Start(t.Context(), log, "victim", tasks, temporal, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Stop(context.Background()) })

	completed := &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("completed")}
	polling := &workflowservice.PollWorkflowTaskQueueRequest{WorkerInstanceKey: "key", TaskQueue: &taskqueue.TaskQueue{Name: "main"}}
	sticky := &workflowservice.PollWorkflowTaskQueueRequest{WorkerInstanceKey: "key", TaskQueue: &taskqueue.TaskQueue{Name: "sticky", NormalName: "main", Kind: enums.TASK_QUEUE_KIND_STICKY}}
	call(t, tasks, sticky, &workflowservice.PollWorkflowTaskQueueResponse{}, nil)
	call(t, tasks, polling, workflowTask("a", "completed"), nil)
	call(t, tasks, polling, &workflowservice.PollWorkflowTaskQueueResponse{}, nil) // none arrived
	call(t, tasks, completed, &workflowservice.RespondWorkflowTaskCompletedResponse{WorkflowTask: workflowTask("a", "next")}, nil)
	call(t, tasks, &workflowservice.StartWorkflowExecutionRequest{}, &workflowservice.StartWorkflowExecutionResponse{EagerWorkflowTask: workflowTask("b", "failed")}, nil)
	call(t, tasks, &workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: []byte("failed")}, &workflowservice.RespondWorkflowTaskFailedResponse{}, nil)
	repeated := workflowTask("c", "unanswered")
	repeated.Attempt = 2
	call(t, tasks, polling, repeated, nil)
	call(t, tasks, &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("unanswered")}, &workflowservice.RespondWorkflowTaskCompletedResponse{}, serviceerror.NewUnavailable("no answer"))
	call(t, tasks, polling, workflowTask("d", "unknown"), nil)
	call(t, tasks, &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("unknown")}, &workflowservice.RespondWorkflowTaskCompletedResponse{}, serviceerror.NewNotFound("it has timed out"))
	for _, run := range []string{"a", "c"} {
		received, isRepeated, err := victim.AwaitWorkflowTask(t.Context(), run)
		if err != nil || isRepeated != (run == "c") || time.Since(received) > time.Minute {
			t.Errorf("AwaitWorkflowTask of %s: got %s, %v and %v, want a time of the last minute, %v and no error", run, received, isRepeated, err, run == "c")
		}
	}
	for _, run := range []string{"b", "d", "e"} {
		if _, _, err := victim.AwaitWorkflowTask(t.Context(), run); err == nil {
			t.Errorf("AwaitWorkflowTask of %s: got no error, want one", run)
		}
	}
	if _, err := victim.Begin(t.Context(), []byte("attempt")); err != nil { // its record has no ended task
		t.Fatal(err)
	}
	log.Conn().Close()
	select {
	case dead := <-ended:
		if dead != (presence.Poller{Queue: "main", InstanceKey: "key", StickyQueue: "sticky"}) {
			t.Errorf("ended polls of %+v, want those of the victim", dead)
		}
	case <-time.After(time.Minute):
		t.Fatal("the polls of the victim are not ended")
	}
	want := map[string]bool{"next": true, "unanswered": true, "attempt": false}
	for len(want) > 0 {
		select {
		case task := <-fails:
			isWorkflow, known := want[string(task.Token)]
			if !known || isWorkflow != task.IsWorkflow {
				t.Fatalf("failed task = %s (workflow %v), want one of %v", task.Token, task.IsWorkflow, want)
			}
			delete(want, string(task.Token))
		case <-time.After(time.Minute):
			t.Fatalf("not failed: %v", want)
		}
	}
}
