package activities_test

import (
	"log/slog"
	"time"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// Temporal's test environments take a workflow that gets no processor for a second for one that hangs, and one
// to which nothing happens for three seconds for one that is stuck. A busy machine needs longer.

func newWorkflowEnv() *testsuite.TestWorkflowEnvironment {
	return newSuite().NewTestWorkflowEnvironment().SetTestTimeout(time.Minute).
		SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
}

func newActivityEnv() *testsuite.TestActivityEnvironment {
	return newSuite().NewTestActivityEnvironment()
}

func newSuite() *testsuite.WorkflowTestSuite {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return &suite
}
