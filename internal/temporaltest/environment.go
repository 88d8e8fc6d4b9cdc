// Package temporaltest has the environment in which tests execute workflows without a server.
package temporaltest

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/interceptor"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// NewEnvironment returns an environment for workflows that logs to a handler. Unlike the SDK's, it
// lets cancelled activities end where the workflow waits for that, and suits busy machines: it
// accepts workflows that get no processor for a second, and tests in which nothing happens for
// three seconds. interceptors are added to its own.
func NewEnvironment(log slog.Handler, interceptors ...interceptor.WorkerInterceptor) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(log)))
	return suite.NewTestWorkflowEnvironment().SetTestTimeout(time.Minute).SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: append([]interceptor.WorkerInterceptor{&cancelWaiter{}}, interceptors...),
	})
}
