package devserver

import (
	"time"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
)

// One shard and one connection: SQLite writes one transaction at a time, so more
// of either only move the queue from Go's connection pool, which wakes the next in
// line, to SQLite's busy handler, which sleeps and tries again. The number of
// shards is fixed when the database is created.
const (
	historyShards = 1
	connections   = 1
)

// pragmas of every connection. Names go in without an underscore.
var pragmas = map[string]string{
	"journal_mode": "wal",
	"synchronous":  "1", // NORMAL: kill -9 loses nothing, a power cut the last commits
	"busy_timeout": "10000",

	// Room for what is live, sorting in memory, and a checkpoint per 16 MiB.
	"cache_size":         "-32768",
	"temp_store":         "2",
	"wal_autocheckpoint": "4000",
}

// dynamicConfig sets Temporal, whose defaults are for clusters, for one process. historyEvents is
// as in Options. `go test -bench . -benchtime 500x` shows what a setting is worth.
func dynamicConfig(historyEvents int) dynamicconfig.StaticClient {
	values := map[dynamicconfig.Key]any{
		dynamicconfig.EnableEagerWorkflowStart.Key():            true,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// A task waits for the next read of its queue. The default of 20 reads per
		// second puts 50 ms before every task that goes through matching.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 200,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():    100,

		// A timer, and with it a retry, is otherwise up to a second late.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,

		// A workflow that continues as new, or starts again under its ID, less than a second after
		// it began otherwise waits out that second: a queued input, a decision or a tool result
		// would wait with it.
		dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): time.Duration(0),

		// A worker that stops is given no more tasks, and does what it has been given. Otherwise a
		// task may go to a poll that it gave up, and waits there for its timeout.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,

		// History drops a wake-up of a waiting reader when several events come at
		// once; the reader then waits out its poll, by default 20 s.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 5 * time.Second,

		// Sized for hundreds of shards: 512 goroutines per queue.
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():    64,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():       64,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():  16,
		dynamicconfig.MemoryTimerProcessorSchedulerWorkerCount.Key(): 16,
		dynamicconfig.ArchivalProcessorSchedulerWorkerCount.Key():    1,

		// Until a queue is acknowledged its finished tasks are walked over again and again.
		dynamicconfig.TransferProcessorUpdateAckInterval.Key():   3 * time.Second,
		dynamicconfig.TimerProcessorUpdateAckInterval.Key():      3 * time.Second,
		dynamicconfig.VisibilityProcessorUpdateAckInterval.Key(): 3 * time.Second,

		// Finished runs stay in memory as long as there is room: 128,000 of them by default, at
		// more than 10 KiB each.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key():     2000,
		dynamicconfig.EventsHostLevelCacheMaxSizeBytes.Key(): 32 << 20,

		// Housekeeping of large installations, each with its own system workflow and
		// pollers. Closing a parent's children is then done by its own task.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

		// The worker that runs schedules and worker deployments.
		dynamicconfig.WorkerPerNamespaceWorkerOptions.Key(): sdkworker.Options{
			MaxConcurrentActivityTaskPollers: 1,
			MaxConcurrentWorkflowTaskPollers: 2, // the least that can serve a sticky queue
		},
	}
	if historyEvents > 0 {
		values[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = historyEvents
	}
	return wrap(values)
}

// wrap wraps every value once: a bare value in a StaticClient is wrapped, and
// converted, again at each of the many look-ups per workflow.
func wrap(values map[dynamicconfig.Key]any) dynamicconfig.StaticClient {
	c := make(dynamicconfig.StaticClient, len(values))
	for k, v := range values {
		c[k] = []dynamicconfig.ConstrainedValue{{Value: v}}
	}
	return c
}
