package devserver

import (
	"maps"
	"time"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is what benchmarks vary.
type tuning struct {
	shards  int32
	conns   int
	pragmas map[string]string
	dynamic map[dynamicconfig.Key]any
}

func defaultTuning() tuning {
	return tuning{
		shards: 1,
		conns:  1,
		pragmas: map[string]string{
			"journal_mode": "wal",
			"synchronous":  "1",
			"busy_timeout": "10000",
		},
		dynamic: map[dynamicconfig.Key]any{
			dynamicconfig.EnableEagerWorkflowStart.Key():            true,
			dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
			dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

			// Housekeeping of large installations, each with its own system workflow and
			// pollers. Closing a parent's children is then done by its own task.
			dynamicconfig.TaskQueueScannerEnabled.Key():       false,
			dynamicconfig.HistoryScannerEnabled.Key():         false,
			dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

			// The worker that runs schedules and worker deployments.
			dynamicconfig.WorkerPerNamespaceWorkerOptions.Key(): sdkworker.Options{
				MaxConcurrentActivityTaskPollers: 1,
				MaxConcurrentWorkflowTaskPollers: 2,
			},

			// A timer, and with it a retry, is otherwise up to a second late.
			dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		},
	}
}

// dynamicClient wraps every value once: a bare value in a StaticClient is wrapped,
// and converted, again at each of the thousands of look-ups per workflow.
func (t tuning) dynamicClient() dynamicconfig.StaticClient {
	c := make(dynamicconfig.StaticClient, len(t.dynamic))
	for k, v := range maps.All(t.dynamic) {
		c[k] = []dynamicconfig.ConstrainedValue{{Value: v}}
	}
	return c
}
