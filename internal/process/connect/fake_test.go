package connect_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// frontend implements the part of Temporal's API that connecting uses. Each function returns an
// error or nil.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer

	describe func(calls int) error
	count    func(added map[string]bool) error
	add      func() error

	mu         sync.Mutex
	describes  int
	attributes map[string]bool
	lastQuery  string
}

// serve starts the frontend and returns its address. The frontend stops with the test.
func (f *frontend) serve(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.attributes = map[string]bool{}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		answer, err := handle(ctx, request)
		return answer, serviceerror.ToStatus(err).Err()
	}))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	operatorservice.RegisterOperatorServiceServer(server, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return listener.Addr().String()
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.describes++
	if f.describe != nil {
		if err := f.describe(f.describes); err != nil {
			return nil, err
		}
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *frontend) CountWorkflowExecutions(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastQuery = r.GetQuery()
	if err := f.count(f.attributes); err != nil {
		return nil, err
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (f *frontend) AddSearchAttributes(_ context.Context, r *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range r.GetSearchAttributes() {
		f.attributes[name] = true
	}
	if f.add != nil {
		if err := f.add(); err != nil {
			return nil, err
		}
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}
