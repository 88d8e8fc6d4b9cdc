package systemroutes

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/stream"
)

// maxAge is how long a description of the system is used. Its requests to NATS and Temporal do not
// multiply with the pages that show it.
const maxAge = time.Second

// timeout bounds the requests of one description.
const timeout = 3 * time.Second

// Routes serves the description of the system. All fields but Workers and ModelCalls are required. It
// is safe for concurrent use.
type Routes struct {
	problem.Writer

	Environment Environment
	Access      *access.Guard
	Log         *stream.Log
	Temporal    client.Client
	Started     time.Time
	// Workers returns the workers that announce themselves. It is called concurrently. nil = none.
	Workers func() []Worker
	// ModelCalls returns what keeps workers from calling models. It is called concurrently. nil =
	// nothing does.
	ModelCalls func(ctx context.Context) ModelCalls
	// Checks makes all readiness checks, or returns results that are a second old.
	Checks func(ctx context.Context) []Check
	// Node returns what this process serves now. It is called concurrently.
	Node   func() Node
	Logger *slog.Logger

	mu        sync.Mutex // guards described and last; is held during a description
	described time.Time
	last      *System
}

// Register adds the route of the system to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.GET("/system", r.Handle(r.showSystem))
}

// showSystem serves GET /v1/system. Errors: 403 forbidden.
func (r *Routes) showSystem(c *gin.Context) error {
	if err := r.Access.CheckPlatform(c.Request.Context(), policy.ReadSystem); err != nil {
		return err
	}
	// The description belongs to all requests, so it does not end with one of them.
	ctx := context.WithoutCancel(c.Request.Context())
	return request.WriteJSON(c, http.StatusOK, r.system(ctx))
}

// system returns the last description, or describes the system again if that is older than maxAge.
func (r *Routes) system(ctx context.Context) *System {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || time.Since(r.described) >= maxAge {
		r.last = r.describe(ctx)
		r.described = time.Now()
	}
	return r.last
}

// describe asks the log and Temporal concurrently. What does not answer is missing; the checks tell
// why.
func (r *Routes) describe(ctx context.Context) *System {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	env := r.Environment
	s := &System{
		Info: version.Read(), Mode: env.Mode, StartedAt: r.Started.UTC(), Ready: true, Workers: []Worker{}, ModelCalls: ModelCalls{[]Model{}, []Provider{}}, Links: env.Links(), Node: r.Node(),
		Temporal: Temporal{Address: env.TemporalAddress, Namespace: env.TemporalNamespace},
	}
	if r.Workers != nil {
		s.Workers = r.Workers()
	}
	var wait sync.WaitGroup
	wait.Go(func() { s.Checks = r.Checks(ctx) })
	if r.ModelCalls != nil {
		wait.Go(func() { s.ModelCalls = r.ModelCalls(ctx) })
	}
	wait.Go(func() { s.Log = r.describeLog(ctx) })
	wait.Go(func() { s.Queues = r.taskQueues(ctx, s.Workers) })
	wait.Go(func() {
		info, err := r.Temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		if err == nil {
			s.Temporal.Version = info.GetServerVersion()
		}
	})
	wait.Wait()
	for _, check := range s.Checks {
		s.Ready = s.Ready && check.Err == nil
	}
	return s
}

// describeLog describes what the log stores.
func (r *Routes) describeLog(ctx context.Context) Log {
	described := Log{ServerVersion: r.Log.Conn().ConnectedServerVersion(), Streams: []Stream{}}
	storage, err := r.Log.Storage(ctx)
	if err != nil {
		return described
	}
	described.Bytes, described.MaxBytes = storage.Bytes, storage.MaxBytes
	for _, s := range storage.Streams {
		shown := Stream{Name: s.Name, Messages: s.Messages, Bytes: s.Bytes, MaxBytes: s.MaxBytes}
		for _, replica := range s.Replicas {
			shown.Replicas = append(shown.Replicas, Replica(replica))
		}
		described.Streams = append(described.Streams, shown)
	}
	return described
}
