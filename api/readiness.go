package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
)

// readinessTimeout bounds a readiness check.
const readinessTimeout = 2 * time.Second

// ready serves GET /readyz for load balancers. It answers 200 if the log takes writes, Temporal
// answers, and the inbox and the index of threads receive changes. Otherwise it answers 503 with
// the code of the first failure: log_full, log_unavailable, temporal_unavailable, inbox_unavailable
// or threads_unavailable. The result is at most readinessAge old.
func (s *Server) ready(c *gin.Context) error {
	// The check belongs to all probes, so it does not end with the request of one.
	ctx := context.WithoutCancel(c.Request.Context())
	if err := s.readiness.result(func() error { return s.checkReadiness(ctx) }); err != nil {
		return err
	}
	c.String(http.StatusOK, "ready\n")
	return nil
}

// checkReadiness checks what ready reports. It takes at most readinessTimeout.
func (s *Server) checkReadiness(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	switch err := s.Log.Ready(ctx); {
	case errors.Is(err, stream.ErrFull):
		return problem.New(http.StatusServiceUnavailable, "log_full", "the log is full, and runs wait until it has room")
	case err != nil:
		return problem.New(http.StatusServiceUnavailable, "log_unavailable", "the log does not answer")
	}
	if _, err := s.Temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return problem.New(http.StatusServiceUnavailable, "temporal_unavailable", "Temporal does not answer")
	}
	if s.Inbox != nil && !s.Inbox.Index.Current() {
		return problem.New(http.StatusServiceUnavailable, "inbox_unavailable", "this API process does not receive changes of the list of approvals")
	}
	if s.Threads != nil && !s.Threads.Current() {
		return problem.New(http.StatusServiceUnavailable, "threads_unavailable", "this API process does not receive changes of the list of threads")
	}
	return nil
}
