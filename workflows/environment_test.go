package workflows_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// newEnvironment returns a test environment for busy machines. It accepts workflows that get no processor
// for a second, and tests in which nothing happens for three seconds.
func newEnvironment(t testing.TB) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(transitions{slog.DiscardHandler, t})))
	return suite.NewTestWorkflowEnvironment().SetTestTimeout(time.Minute).
		SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
}

// transitions fails the test when a run takes a transition that the table of phases does not have.
type transitions struct {
	slog.Handler
	t testing.TB
}

func (transitions) Enabled(context.Context, slog.Level) bool { return true }

func (h transitions) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h transitions) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "invalid phase transition" {
		r.Attrs(func(a slog.Attr) bool { h.t.Errorf("%s: %s", r.Message, a); return true })
	}
	return nil
}
