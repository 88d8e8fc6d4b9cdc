package devserver

import (
	"time"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
)

// SQLite executes one transaction at a time. More shards or connections would only move the queue
// from Go's connection pool, which wakes the next in line, to SQLite's busy handler, which sleeps
// and tries again. The number of shards is fixed when the database is created.
const (
	historyShards = 1
	connections   = 1
)

// Limits of each Temporal service, per second: requests, and reads and writes of the database. They
// are far above what the process can reach.
const (
	maxRPS = 50_000
	maxQPS = 200_000
)

// pragmas are those of every connection. Temporal's plugin expects the names without an underscore
// at the beginning.
var pragmas = map[string]string{
	"journal_mode": "wal",
	"synchronous":  "1", // NORMAL: kill -9 loses nothing, a power cut the last commits
	"busy_timeout": "10000",

	// 8 MiB for what is live, and sorting in memory. The page cache of the operating system has the
	// rest. A checkpoint per 4 MiB is SQLite's default: it delays one transaction by up to 15 ms, and
	// one per 16 MiB by 35 ms, for the same time in total.
	"cache_size": "-8192",
	"temp_store": "2",
}

// dynamicConfig returns Temporal's dynamic configuration for one process; its defaults are for
// clusters. `go test -bench . -benchtime 500x` measures the effect of a setting.
func dynamicConfig(o Options) dynamicconfig.StaticClient {
	values := map[dynamicconfig.Key]any{
		dynamicconfig.EnableEagerWorkflowStart.Key():            true,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// A task waits for the next read of its queue. By default there are 20 reads per second,
		// which adds up to 50 ms to every task that passes matching.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 200,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():    100,

		// Visibility is eventually consistent. With 4 reads per second instead of 20, most short runs
		// are closed when their tasks are read: Temporal then writes only the row of the close.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 4,

		// Timers, and retries with them, are up to a second late by default.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,

		// By default a workflow that continues as new, or starts again under its ID, within a second
		// of its start waits until that second is over. A decision soon after a thread is parked
		// would wait with it.
		dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): o.ReuseInterval,

		// Without this setting, matching may give a task to a poll that a stopping worker has
		// abandoned. The task would then wait for its timeout.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,

		// While tasks wait, tenants take turns (runs.TenantPriority). Without this setting, the tasks
		// of one tenant would wait for all earlier ones of another.
		dynamicconfig.MatchingEnableFairness.Key(): true,

		// History can lose the wake-up of a long poll when several events arrive at once. The poll
		// then lasts for its full time, by default 20 s.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 5 * time.Second,

		// The defaults protect a cluster from its tenants, and are reached at about 300 short runs per
		// second. The limits of this process are those of its machine.
		dynamicconfig.FrontendRPS.Key():                        maxRPS,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(): maxRPS,
		dynamicconfig.HistoryRPS.Key():                         maxRPS,
		dynamicconfig.MatchingRPS.Key():                        maxRPS,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():          maxQPS,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():           maxQPS,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():          maxQPS,

		// The defaults are for hundreds of shards: 512 goroutines per queue.
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():    64,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():       64,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():  16,
		dynamicconfig.MemoryTimerProcessorSchedulerWorkerCount.Key(): 16,
		dynamicconfig.ArchivalProcessorSchedulerWorkerCount.Key():    1,

		// There is no other cluster to replicate to or from.
		dynamicconfig.ReplicationProcessorSchedulerWorkerCount.Key():            1,
		dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,
		// The history of the last 20 s for other clusters: the least that Temporal allows.
		dynamicconfig.XDCCacheMaxSizeBytes.Key(): 0,

		// Before a queue is acknowledged, each read passes its finished tasks again.
		dynamicconfig.TransferProcessorUpdateAckInterval.Key():   3 * time.Second,
		dynamicconfig.TimerProcessorUpdateAckInterval.Key():      3 * time.Second,
		dynamicconfig.VisibilityProcessorUpdateAckInterval.Key(): 3 * time.Second,

		// By default up to 128,000 workflows stay in the history cache, at more than 10 KiB each.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 500,

		// Averages of the requests to the database, which tell other hosts how busy this one is.
		dynamicconfig.PersistenceHealthSignalMetricsEnabled.Key(): false,

		// Scanners for large installations, each with a system workflow and pollers of its own.
		// Without the parent-close worker, the task that closes a parent also closes its children.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

		// The system worker of schedules and worker deployments.
		dynamicconfig.WorkerPerNamespaceWorkerOptions.Key(): sdkworker.Options{
			MaxConcurrentActivityTaskPollers: 1,
			MaxConcurrentWorkflowTaskPollers: 2, // the least that can serve a sticky queue
		},
	}
	if o.HistoryEvents > 0 {
		values[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = o.HistoryEvents
	}
	return wrap(values)
}

// wrap wraps every value once. Temporal would otherwise wrap and convert a bare value again at each
// of the many look-ups per workflow.
func wrap(values map[dynamicconfig.Key]any) dynamicconfig.StaticClient {
	c := make(dynamicconfig.StaticClient, len(values))
	for k, v := range values {
		c[k] = []dynamicconfig.ConstrainedValue{{Value: v}}
	}
	return c
}
