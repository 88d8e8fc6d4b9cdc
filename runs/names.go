package runs

import "time"

// TaskQueue is the task queue of all workflows and of most activities. Activities on the workflow's
// own queue start eagerly, without a round trip.
const TaskQueue = "perdure"

// ProcessQueuePrefix begins the task queues that only one worker process serves.
const ProcessQueuePrefix = TaskQueue + "/process/"

// WorkflowTaskTimeout is after how long Temporal gives the workflow task of a dead worker to another
// one. It is the last resort: workers that notice the death of another one report its tasks sooner.
const WorkflowTaskTimeout = 3 * time.Second

// The names of workflows, activities, updates and signals in Temporal. They are in histories: from
// 0.1.0 on they do not change.
const (
	TypeRun                 = "agent.run.v1"
	TypeChild               = "agent.child.v1"
	TypeParked              = "thread.parked.v1"
	TypeDelivery            = "webhook.deliver.v1"
	TypeNotifications       = "interrupt.notifications.v1"
	TypeFiring              = "schedule.fire.v1"
	TypeTitle               = "thread.title.v1"
	TypeTrigger             = "event.trigger.v1"
	ActivityCallModel       = "model.call.v1"
	ActivityCallTool        = "tool.call.v1"
	ActivityFinish          = "run.finish.v1"
	ActivityAnswerSubagent  = "subagent.answer.v1"
	ActivityNotify          = "interrupt.notify.v1"
	ActivityAnnounce        = "interrupt.announce.v1"
	ActivityStoreToolResult = "tool.result.v1"
	ActivityWriteTitle      = "title.write.v1"
	ActivityAwaitQueue      = "queue.await.v1"
	ActivityAdvance         = "pipeline.advance.v1"
	ActivityIsLogAhead      = "log.ahead.v1"
	ActivityLimitInterrupt  = "limit.interrupt.v1"
	ActivitySendWebhook     = "webhook.send.v1"
	ActivityStartFiredRun   = "schedule.run.v1"
	ActivityRunStatus       = "schedule.status.v1"
	ActivityCancelRun       = "schedule.cancel.v1"
	ActivityTriggerRun      = "event.run.v1"
	UpdateSubmit            = "submit"
	UpdateSteer             = "steer"
	UpdatePause             = "pause"
	UpdateResume            = "resume"
	UpdateDecide            = "decide"
	SignalCancel            = "cancel"
	SignalToolResult        = "tool_result"
	SignalEnded             = "ended"
)
