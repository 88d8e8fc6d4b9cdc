package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/auth/policy"
)

// WorkflowService implements client.Client.
func (s *temporalStub) WorkflowService() workflowservice.WorkflowServiceClient { return frontendStub{} }

// frontendStub is a frontend of Temporal in which two tasks wait in each task queue.
type frontendStub struct {
	workflowservice.WorkflowServiceClient
}

func (frontendStub) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest, ...grpc.CallOption) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "1.32.1"}, nil
}

func (frontendStub) DescribeTaskQueue(_ context.Context, in *workflowservice.DescribeTaskQueueRequest, _ ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	if in.GetTaskQueue().GetName() == "broken" {
		return nil, errors.New("broken")
	}
	if in.GetNamespace() != "prod" || !in.GetReportStats() || in.GetTaskQueueType() == enums.TASK_QUEUE_TYPE_UNSPECIFIED {
		return nil, errors.New("invalid request")
	}
	return &workflowservice.DescribeTaskQueueResponse{
		Pollers: []*taskqueuepb.PollerInfo{{}},
		Stats:   &taskqueuepb.TaskQueueStats{ApproximateBacklogCount: 2, ApproximateBacklogAge: durationpb.New(1500 * time.Millisecond)},
	}, nil
}

// withSystem gives the node workers and an environment.
func withSystem(c *api.Config) {
	c.Environment = systemroutes.Environment{
		Mode: "api", TemporalAddress: "temporal:7233", TemporalNamespace: "prod", TemporalUI: "https://temporal.example", TraceURL: "https://traces.example/{traceId}",
	}
	c.ModelCalls = func(context.Context) systemroutes.ModelCalls {
		circuit := systemroutes.Circuit{Worker: "w1", State: "open", Since: time.UnixMilli(0).UTC()}
		return systemroutes.ModelCalls{
			Models: []systemroutes.Model{{Model: "openai/gpt-5", Circuits: []systemroutes.Circuit{circuit}}}, Providers: []systemroutes.Provider{{Provider: "openai", Calls: 2, Waiting: 1}},
		}
	}
	c.Workers = func() []systemroutes.Worker {
		return []systemroutes.Worker{{Name: "w1", Version: "v1", Queues: []string{"perdure", "gpu", "broken"}, Tools: []string{"charge"}, SeenAt: time.Now()}}
	}
}

// TestSystem: administrators of the platform see the workers, their task queues, the log, Temporal
// and the checks. A task queue about which Temporal does not answer is left out. Other callers see
// nothing.
func TestSystem(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, withThreadList(t), withSystem)
	member := node.do(http.MethodGet, "/v1/system", "", "X-Tenant", "acme", "X-Subject", "ann", "X-Role", policy.DefaultRoles.TenantAdmin)
	member.wantStatus(t, "an administrator of a tenant", http.StatusForbidden)
	a := node.do(http.MethodGet, "/v1/system", "", "X-Tenant", "ops", "X-Subject", "root", "X-Role", policy.DefaultRoles.PlatformAdmin)
	a.mustStatus(t, "an administrator of the platform", http.StatusOK)
	for _, want := range []string{
		`"mode":"api"`, `"ready":true`, `{"name":"log","ready":true},{"name":"temporal","ready":true},{"name":"threads","ready":true}`,
		`"name":"w1"`, `"tools":["charge"]`,
		`"models":[{"model":"openai/gpt-5","circuits":[{"worker":"w1","state":"open","since":"1970-01-01T00:00:00Z"}]}],"providers":[{"provider":"openai","calls":2,"waiting":1}]`,
		`"queues":[{"name":"gpu","tasks":"activity","pollers":1,"backlog":2,"backlogSeconds":1.5},{"name":"perdure","tasks":"activity",`,
		`{"name":"perdure","tasks":"workflow",`,
		`"streams":[{"name":"PERDURE",`, `"temporal":{"address":"temporal:7233","namespace":"prod","version":"1.32.1"}`,
		`"workflow":"https://temporal.example/namespaces/prod/workflows/{workflowId}"`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("got %s, want %s", a.body, want)
		}
	}
}
