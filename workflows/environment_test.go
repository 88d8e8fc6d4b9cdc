package workflows_test

import (
	"log/slog"
	"time"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// newEnv is a test environment that does not take a workflow that gets no processor for a second for one that
// hangs, nor one to which nothing happens for three seconds for one that is stuck: a busy machine needs longer.
func newEnv() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestWorkflowEnvironment().SetTestTimeout(time.Minute).
		SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
}
