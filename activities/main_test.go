package activities_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream/streamtest"
)

// Temporal's test environment tells a workflow at once that an activity is cancelled, and lets its
// attempt go on. If that attempt fails later, because another one has taken its lane over, two goroutines wait
// for the next attempt until the process ends.
func TestMain(m *testing.M) {
	const environment = "go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl)."
	goleak.VerifyTestMain(m, streamtest.Leaks(),
		goleak.IgnoreTopFunction(environment+"executeActivityWithRetryForTest"), goleak.IgnoreTopFunction(environment+"ExecuteActivity.func2"))
}
