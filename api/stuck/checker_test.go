package stuck

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
)

// description is what Temporal says of a workflow.
type description = workflowservice.DescribeWorkflowExecutionResponse

// temporalStub is a Temporal with workflows by ID, and pollers by the name of their task queue.
type temporalStub struct {
	client.Client

	workflows map[string]*description
	pollers   map[string][]*taskqueuepb.PollerInfo
	err       error
	queues    atomic.Int32 // requests about task queues
}

func (s *temporalStub) DescribeWorkflowExecution(_ context.Context, workflow, _ string) (*description, error) {
	if s.err != nil {
		return nil, s.err
	}
	w := s.workflows[workflow]
	if w == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return w, nil
}

func (s *temporalStub) DescribeTaskQueue(_ context.Context, name string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	s.queues.Add(1)
	return &workflowservice.DescribeTaskQueueResponse{Pollers: s.pollers[name+" "+kind.String()]}, nil
}

// ago returns a time of Temporal before now.
func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(time.Now().Add(-d)) }

// open returns an open workflow on the main task queue.
func open(change func(w *description)) *description {
	w := &description{
		ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "perdure"}},
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}
	if change != nil {
		change(w)
	}
	return w
}

// calling returns an open workflow with an activity in a state, on a task queue.
func calling(queue string, state enums.PendingActivityState, scheduled time.Duration) *description {
	return open(func(w *description) {
		w.PendingActivities = []*workflowpb.PendingActivityInfo{{
			ActivityType: &commonpb.ActivityType{Name: "model.call.v1"}, State: state, ScheduledTime: ago(scheduled),
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
		}}
	})
}

// deciding returns an open workflow with a workflow task.
func deciding(state enums.PendingWorkflowTaskState, scheduled time.Duration, attempt int32) *description {
	return open(func(w *description) {
		w.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{State: state, ScheduledTime: ago(scheduled), Attempt: attempt}
	})
}

// TestReasons: a run is stuck if a task of its workflow, or of a subagent, waits for a worker, or if
// its workflow task fails again and again. Other runs are not: they work, wait for people or for the
// next attempt, or have ended.
func TestReasons(t *testing.T) {
	t.Parallel()
	const (
		waits  = enums.PENDING_ACTIVITY_STATE_SCHEDULED
		works  = enums.PENDING_ACTIVITY_STATE_STARTED
		queued = enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
		taken  = enums.PENDING_WORKFLOW_TASK_STATE_STARTED
	)
	pinned := deciding(queued, time.Minute, 1)
	pinned.WorkflowExecutionInfo.VersioningInfo = &workflowpb.WorkflowExecutionVersioningInfo{
		Behavior: enums.VERSIONING_BEHAVIOR_PINNED, DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{BuildId: "v1"},
	}
	ended := deciding(queued, time.Minute, 1)
	ended.WorkflowExecutionInfo.Status = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	for name, c := range map[string]struct {
		workflow *description
		want     string
	}{
		"no workflow":                 {nil, ""},
		"ended":                       {ended, ""},
		"waits for people":            {open(nil), ""},
		"works":                       {calling("perdure", works, time.Hour), ""},
		"waits for the next attempt":  {calling("till", waits, -time.Minute), ""},
		"has just called":             {calling("till", waits, time.Second), ""},
		"has just asked its workflow": {deciding(queued, time.Second, 1), ""},
		"second attempt":              {deciding(taken, time.Second, 2), ""},
		"no worker":                   {calling("till", waits, time.Minute), `no worker polls the task queue "till": start one`},
		"dead worker":                 {calling("dead", waits, time.Minute), `no worker polls the task queue "dead": start one`},
		"busy worker":                 {calling("busy", waits, time.Minute), `no worker of the task queue "busy" has room for the run: start further ones`},
		"no worker of the version":    {pinned, `no worker of the version "v1" polls the task queue "perdure": start one`},
		"no worker takes the task":    {deciding(queued, time.Minute, 1), `no worker of the task queue "perdure" has room for the run: start further ones`},
		"fails":                       {deciding(taken, time.Second, 3), `the workflow task of the run fails again and again on the task queue "perdure": read the errors in the logs of its workers`},
		"its subagent has no worker": {
			open(func(w *description) {
				w.PendingChildren = []*workflowpb.PendingChildExecutionInfo{{WorkflowId: "ended"}, {WorkflowId: "child"}}
			}), `no worker polls the task queue "till": start one`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thread := stream.Thread{Tenant: "acme", ID: "t"}
			temporal := &temporalStub{
				workflows: map[string]*description{dispatch.WorkflowID(thread): c.workflow, "child": calling("till", waits, time.Minute)},
				pollers: map[string][]*taskqueuepb.PollerInfo{
					"dead Activity":    {{LastAccessTime: ago(2 * time.Minute)}},
					"busy Activity":    {{LastAccessTime: ago(time.Hour)}, {LastAccessTime: ago(time.Second)}},
					"perdure Workflow": {{LastAccessTime: ago(time.Second), DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{BuildId: "v2"}}},
				},
			}
			got, err := (&Checker{Temporal: temporal}).Check(t.Context(), thread)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if got[0] != nil {
				reason = got[0].Reason
				if !strings.Contains(reason, got[0].TaskQueue) || got[0].Since.IsZero() {
					t.Errorf("got %+v, want the task queue and the time", got[0])
				}
			}
			if reason != c.want {
				t.Errorf("reason = %q, want %q", reason, c.want)
			}
		})
	}
}

// TestManyThreads: the answers are in the order of the threads, and each task queue is asked about
// once. An error of Temporal is returned.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	temporal := &temporalStub{workflows: map[string]*description{}}
	var threads []stream.Thread
	for i := range 50 {
		thread := stream.Thread{Tenant: "acme", ID: string(rune('a' + i))}
		threads = append(threads, thread)
		if i%2 == 0 {
			temporal.workflows[dispatch.WorkflowID(thread)] = calling("till", enums.PENDING_ACTIVITY_STATE_SCHEDULED, time.Minute)
		}
	}
	got, err := (&Checker{Temporal: temporal}).Check(t.Context(), threads...)
	if err != nil {
		t.Fatal(err)
	}
	for i, why := range got {
		if (why != nil) != (i%2 == 0) {
			t.Errorf("thread %d: got %v", i, why)
		}
	}
	if n := temporal.queues.Load(); n != 1 {
		t.Errorf("requests about the task queue = %d, want 1", n)
	}
	temporal.err = errors.New("temporal is away")
	if _, err := (&Checker{Temporal: temporal}).Check(t.Context(), threads...); !errors.Is(err, temporal.err) {
		t.Errorf("error = %v, want %v", err, temporal.err)
	}
}
