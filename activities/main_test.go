package activities_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream/streamtest"
)

// TestMain runs the tests. Temporal's test environment reports an activity as cancelled at once,
// and lets its attempt continue. If that attempt fails later, because another one has superseded
// it, two goroutines wait for the next attempt until the process ends.
func TestMain(m *testing.M) {
	const environment = "go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl)."
	goleak.VerifyTestMain(m, streamtest.Leaks(),
		goleak.IgnoreTopFunction(environment+"executeActivityWithRetryForTest"), goleak.IgnoreTopFunction(environment+"ExecuteActivity.func2"))
}
