package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/stream"
)

// readinessTimeout bounds a readiness check.
const readinessTimeout = 2 * time.Second

// ready serves GET /readyz for load balancers. It answers 200 if the log takes writes, Temporal
// answers, and the inbox and the index of threads receive changes. Otherwise it answers 503 with
// the code of the first failure: log_full, log_unavailable, temporal_unavailable, inbox_unavailable
// or threads_unavailable. The result is at most readinessAge old.
func (s *Server) ready(c *gin.Context) error {
	for _, check := range s.checkReadiness(c.Request.Context()) {
		if check.Err != nil {
			return check.Err
		}
	}
	c.String(http.StatusOK, "ready\n")
	return nil
}

// checkReadiness returns the results of all checks, which are at most readinessAge old.
func (s *Server) checkReadiness(ctx context.Context) []systemroutes.Check {
	// The checks belong to all requests, so they do not end with one of them.
	ctx = context.WithoutCancel(ctx)
	return s.readiness.results(func() []systemroutes.Check { return s.makeChecks(ctx) })
}

// makeChecks makes the checks that ready reports. It takes at most readinessTimeout.
func (s *Server) makeChecks(ctx context.Context) []systemroutes.Check {
	ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	checks := []systemroutes.Check{{Name: "log"}, {Name: "temporal"}}
	var wait sync.WaitGroup
	wait.Go(func() { checks[0].Err = s.checkLog(ctx) })
	wait.Go(func() {
		if _, err := s.Temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
			checks[1].Err = problem.New(http.StatusServiceUnavailable, "temporal_unavailable", "Temporal does not answer")
		}
	})
	wait.Wait()
	if s.Inbox != nil {
		check := systemroutes.Check{Name: "inbox"}
		if !s.Inbox.Index.Current() {
			check.Err = problem.New(http.StatusServiceUnavailable, "inbox_unavailable", "this API process does not receive changes of the list of approvals")
		}
		checks = append(checks, check)
	}
	if s.Threads != nil {
		check := systemroutes.Check{Name: "threads"}
		if !s.Threads.Current() {
			check.Err = problem.New(http.StatusServiceUnavailable, "threads_unavailable", "this API process does not receive changes of the list of threads")
		}
		checks = append(checks, check)
	}
	return checks
}

// checkLog checks that the log takes writes.
func (s *Server) checkLog(ctx context.Context) error {
	switch err := s.Log.Ready(ctx); {
	case errors.Is(err, stream.ErrFull):
		return problem.New(http.StatusServiceUnavailable, "log_full", "the log is full, and runs wait until it has room")
	case err != nil:
		return problem.New(http.StatusServiceUnavailable, "log_unavailable", "the log does not answer")
	}
	return nil
}
