package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// This file has the dependencies of all activities, their registration, the places where they write
// in the log, and the frame of an attempt: heartbeats, cancellation, and the context for the last
// writes.

// Definitions finds published agents. The errors are catalog.ErrUnknownAgent and
// catalog.ErrUnknownRevision for an agent or a revision that is not published. The activities use
// it concurrently.
type Definitions interface {
	// Revision returns the definition of one revision of an agent, for a run of a tenant. Revisions
	// never change.
	Revision(ctx context.Context, tenant, agent, revision string) (*agents.Definition, error)
	// Latest returns the current revision of the agent that a name means for a tenant; "" = in a
	// definition of the platform (see [catalog.Referrer]). Subagents, handoffs and agent steps use
	// it.
	Latest(ctx context.Context, tenant, agent string) (catalog.Published, error)
	// Publications finds the authors of a tenant's agents.
	snapshot.Publications
}

// Activities implements all activities of a worker. It holds dependencies and no state of its own,
// so one value serves all runs, concurrently. Set the fields before Register and do not change them
// afterwards. The creator owns and closes the dependencies. Log, Snapshots, Agents, Models, Tools,
// Commands and Local are required; the other fields say what their zero value means.
type Activities struct {
	// Log is the log of all runs. Snapshots computes conversations and state from the same log.
	Log       *stream.Log
	Snapshots *snapshot.Store
	Agents    Definitions
	// Models are the providers that this worker can call, by the name before the slash in an
	// agent's model ("openai" in "openai/gpt-5"). A provider that is missing fails the run.
	Models map[string]llm.Model
	// Admission admits calls of Models within limits; nil = all calls begin at once.
	Admission *admission.Gate
	// Remotes calls agents on other servers.
	Remotes RemoteAgents
	// Tools are the tools that this worker can call. A step that needs another tool waits for a
	// worker that has it, for ToolGrace.
	Tools *tools.Registry
	// Commands receives the announcements of cancels, which arrive before Temporal's cancellation (that
	// waits for a heartbeat), and of updates.
	Commands *stream.Commands
	// Local are the steps that this worker executes within workflow tasks. The creator stops them.
	Local *LocalSteps
	// ToolGrace is how long a step is retried that lacks a tool, an agent or a task queue, since
	// Temporal scheduled it. 0 = DefaultToolGrace.
	ToolGrace time.Duration
	// Events ends the waits of runs for events; nil = none is ended. StartTriggeredRun requires it.
	Events *events.Router
	// Inbox lists the open interrupts of all threads; nil = Notify does nothing. Webhooks has the
	// receivers of interrupt events; nil = there are none. StartDelivery starts the workflow that
	// delivers one event to one receiver, and does nothing if it was started before. It is required
	// if Webhooks is set.
	Inbox         *inbox.Store
	Webhooks      *webhook.Sender
	StartDelivery func(ctx context.Context, d runs.Delivery) error
	// Queues knows which task queues have workers. nil = all queues are taken as served.
	Queues Queues
	// Presence announces the attempts of this worker, so that another worker can fail them within
	// seconds if this one dies. nil = they fail when their heartbeat timeout is over.
	Presence Presence

	// Files has the files of messages. The zero value has none.
	Files FileStore

	Accounts
	Firings
}

// Accounts are what model calls are counted with. All fields may be nil.
type Accounts struct {
	// Prices are the prices of models; nil = all are unknown. Budget bounds what a tenant may use
	// in a day, and counts it; nil = unbounded and not counted.
	Prices *budget.File
	Budget *budget.Ledger
	// Usage counts the runs that have ended, for the report of usage; nil = they are not counted.
	Usage *usage.Ledger
}

// Firings are what only the activities use that start runs without a client: those of schedules (schedule.go)
// and of triggers (trigger.go). They require all fields except Quotas and Audit; those of triggers need no
// Schedules.
type Firings struct {
	// Policies decides whether such a run may send input to a thread, and Principals has the services
	// as which the runs act.
	Policies   *policy.Engine
	Principals *principals.Principals
	// Schedules has the definitions of schedules, and Dispatch starts and cancels their runs.
	Schedules *schedules.Store
	Dispatch  *dispatch.Dispatcher
	// Quotas has the quotas of tenants that the runs must not exceed; nil = they have no quotas, as in
	// tests.
	Quotas *quota.Meter
	// Audit records each start; nil = they are not recorded. The caller closes it.
	Audit *store.Writer
}

// Queues knows which task queues have workers. The task queue of all workers (runs.TaskQueue) is
// not among them. Implementations are safe for concurrent use.
type Queues interface {
	// Served reports whether a worker has announced that it serves the queue.
	Served(queue string) bool
}

// Presence announces the tasks of this worker to other workers, by their Temporal task tokens.
// Implementations are safe for concurrent use.
type Presence interface {
	// Begin announces an attempt, and returns when the announcement is stored. The caller calls end
	// when the attempt is over.
	Begin(ctx context.Context, token []byte) (end func(), err error)
	// AwaitWorkflowTask returns when the announcement of an execution's workflow task, which this
	// process has received, is stored. isRepeated reports that Temporal has dispatched the task
	// before.
	AwaitWorkflowTask(ctx context.Context, runID string) (received time.Time, isRepeated bool, err error)
}

// RegisterTools registers the only activity of a worker with a task queue of its own: tool calls.
// Such a worker has some tools and needs no models.
func (a *Activities) RegisterTools(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(listed(a, a.CallTool), activity.RegisterOptions{Name: runs.ActivityCallTool})
}

// RegisterSteps registers the activities of the task queue of a process: those that await steps which
// have left their workflow tasks (LocalSteps).
func (a *Activities) RegisterSteps(r worker.ActivityRegistry) {
	a.RegisterTools(r)
	r.RegisterActivityWithOptions(listed(a, a.CallModel), activity.RegisterOptions{Name: runs.ActivityCallModel})
	r.RegisterActivityWithOptions(listed(a, a.Advance), activity.RegisterOptions{Name: runs.ActivityAdvance})
}

// Register registers all activities under their names in package runs. The names are in histories
// of Temporal, so they never change; the names of the Go methods may.
func (a *Activities) Register(r worker.ActivityRegistry) {
	a.RegisterSteps(r)
	r.RegisterActivityWithOptions(a.AwaitQueue, activity.RegisterOptions{Name: runs.ActivityAwaitQueue})
	r.RegisterActivityWithOptions(a.AnnounceInterrupts, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	r.RegisterActivityWithOptions(a.StoreResult, activity.RegisterOptions{Name: runs.ActivityStoreToolResult})
	r.RegisterActivityWithOptions(a.InterruptForLimit, activity.RegisterOptions{Name: runs.ActivityLimitInterrupt})
	r.RegisterActivityWithOptions(a.AnswerSubagent, activity.RegisterOptions{Name: runs.ActivityAnswerSubagent})
	r.RegisterActivityWithOptions(a.IsLogAhead, activity.RegisterOptions{Name: runs.ActivityIsLogAhead})
	r.RegisterActivityWithOptions(a.Finish, activity.RegisterOptions{Name: runs.ActivityFinish})
	r.RegisterActivityWithOptions(a.WriteTitle, activity.RegisterOptions{Name: runs.ActivityWriteTitle})
	r.RegisterActivityWithOptions(a.Notify, activity.RegisterOptions{Name: runs.ActivityNotify})
	r.RegisterActivityWithOptions(a.SendWebhook, activity.RegisterOptions{Name: runs.ActivitySendWebhook})
	r.RegisterActivityWithOptions(a.StartTriggeredRun, activity.RegisterOptions{Name: runs.ActivityTriggerRun})
	r.RegisterActivityWithOptions(a.StartFiredRun, activity.RegisterOptions{Name: runs.ActivityStartFiredRun})
	r.RegisterActivityWithOptions(a.RunStatus, activity.RegisterOptions{Name: runs.ActivityRunStatus})
	r.RegisterActivityWithOptions(a.CancelRun, activity.RegisterOptions{Name: runs.ActivityCancelRun})
}

// runOf returns a run as the log names it.
func runOf(r runs.Ref) stream.Run {
	return stream.Run{Thread: stream.Thread{Tenant: r.Tenant, ID: r.Thread}, ID: r.ID}
}

// agentPlace returns where the agent of a step writes. That is the main lane, or the lane of a
// subagent or branch, which the lane indexes from the run's own agent downwards name together. step
// is the ID of the step that writes there; it need not be s.ID.
func agentPlace(s runs.Step, step string) stream.Place {
	p := stream.Place{Run: runOf(s.Run), Lane: stream.LaneMain, Step: step, Execution: s.Execution, After: s.After, Hidden: s.IsHidden()}
	if child := s.Child; child != nil {
		for _, i := range child.Lanes {
			p.Lane = p.Lane.Subagent(i)
		}
		// Lanes are reused. Records up to Since belong to an earlier child on this lane.
		p.Since, p.Subagent = child.Since, subagentID(child.CallID)
	}
	return p
}

// toolPlace returns where a tool call writes: one of the tool lanes of the step's agent.
func toolPlace(in runs.ToolCall) stream.Place {
	p := agentPlace(in.Step, in.ID)
	p.Lane, p.After = p.Lane.Tool(in.Lane), in.LaneAfter
	if in.LaneAfter == 0 {
		// The workflow knows no record of this lane. All records that the lane may have are of
		// earlier turns, and those are older than the turn's own record After.
		p.Since = max(p.Since, in.After)
	}
	return p
}

// beginCancellable is beginAttempt for work that a cancel of the run ends (see cancellable). The
// caller calls leave.
func (a *Activities) beginCancellable(ctx context.Context, s runs.Step) (_ context.Context, leave func(), err error) {
	ctx, end, err := a.beginAttempt(ctx)
	if err != nil {
		return ctx, end, err
	}
	ctx, release := a.cancellable(ctx, s)
	return ctx, func() { release(); end() }, nil
}

// cancellable returns a child of ctx that ends with stream.ErrCancelled when the step's run is
// cancelled. A compensating step is not ended, because a cancel of the run is what it may
// compensate for. The caller calls release.
func (a *Activities) cancellable(ctx context.Context, s runs.Step) (_ context.Context, release context.CancelFunc) {
	if s.Compensates {
		return ctx, func() {}
	}
	return a.Commands.Context(ctx, runOf(s.Run))
}

// cancelRequested reports whether the log has a request to cancel the step's run. Unlike the
// context of beginCancellable it also finds a cancel from before the attempt began. It is true for
// steps that stop, and false for other compensating steps.
func (a *Activities) cancelRequested(ctx context.Context, s runs.Step) (bool, error) {
	if s.Compensates || s.Stops {
		return s.Stops, nil
	}
	return a.Log.CancelRequested(ctx, runOf(s.Run))
}

// withAttempt is the frame of an activity that a cancel of the run does not end, because it is
// short: the workflow handles the cancel afterwards. It begins the attempt, executes do, and
// returns a panic as an error.
func withAttempt[T any](ctx context.Context, a *Activities, do func(context.Context) (T, error)) (answer T, err error) {
	defer recoverPanic(ctx, &err)
	work, leave, err := a.beginAttempt(ctx)
	if err != nil {
		return answer, activityError(ctx, err)
	}
	defer leave()
	answer, err = do(work)
	return answer, activityError(ctx, err)
}

// beginAttempt begins an attempt: it starts the heartbeats, and announces the attempt to other
// workers. It blocks until the announcement is stored. The returned context ends when Temporal
// cancels the activity or has given the attempt up. The caller calls leave, which stops both and
// waits for the goroutine.
func (a *Activities) beginAttempt(ctx context.Context) (_ context.Context, leave func(), err error) {
	// The heartbeats start first: Begin waits for the log, and an outage must not cost the attempt.
	ctx, stop := heartbeat(ctx)
	endPresence := func() {}
	if a.Presence != nil {
		if endPresence, err = a.Presence.Begin(ctx, activity.GetInfo(ctx).TaskToken); err != nil {
			stop()
			return nil, nil, err
		}
	}
	return ctx, func() { stop(); endPresence() }, nil
}

// heartbeatInterval allows three heartbeats within the heartbeat timeout of workflows (30 s).
const heartbeatInterval = 10 * time.Second

// heartbeat sends heartbeats on a timer, because models are silent for long. The context ends when
// Temporal answers that the activity is cancelled or the attempt is over. stop ends the heartbeats,
// and waits for the goroutine.
//
// The SDK's own heartbeats come only after four fifths of the timeout, and end the attempt when
// Temporal does not answer: an outage of some seconds would end a healthy attempt.
func heartbeat(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(heartbeatInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := sendHeartbeat(ctx); endsAttempt(err) {
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	// stop also ends the context: work that outlives the attempt must not continue.
	return ctx, func() { cancel(context.Canceled); wait.Wait() }
}

// sendHeartbeat sends one heartbeat, and retries until the next one is due. Its detail is the
// number of the step's failures (see failuresBefore), so that the next attempt knows it. A
// heartbeat without details would erase the number.
func sendHeartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	return sendBeat(ctx, failuresBefore(ctx))
}

// sendBeat makes the call to Temporal. Tests replace it before any activity runs: the client of
// Temporal's test environment ends the process.
var sendBeat = func(ctx context.Context, failures int) error {
	return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, activity.GetInfo(ctx).TaskToken, failures)
}

// endsAttempt reports whether the answer to a heartbeat ends the attempt: Temporal has cancelled
// the activity, or does not know the attempt. Other errors mean that Temporal did not answer. They
// do not end it.
func endsAttempt(err error) bool {
	var notFound *serviceerror.NotFound
	return temporal.IsCanceledError(err) || errors.As(err, &notFound)
}

// finalWriteTimeout is how long an activity may continue to write after its context has ended.
const finalWriteTimeout = 10 * time.Second

// errFinalWriteTimeout is the cause of a context of contextAfter whose time is over: the log did
// not take the last records. It is a stream.ErrUnavailable, so it does not count as a failure of
// the step, and Temporal retries.
var errFinalWriteTimeout = fmt.Errorf("activities: timeout of the final write: %w", stream.ErrUnavailable)

// contextAfter returns a context for records that must be written although ctx may have ended.
// While ctx is active the context has no bound: the answer of a model, or of a tool that must not
// be called twice, must survive an outage of the log. After ctx has ended, it lasts for
// finalWriteTimeout. The caller calls the cancel function, which also releases the timer.
func contextAfter(ctx context.Context) (context.Context, context.CancelFunc) {
	// WithoutCancel keeps the values of ctx, such as the trace.
	finalCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(finalWriteTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errFinalWriteTimeout)
		case <-finalCtx.Done():
		}
	})
	return finalCtx, func() { stop(); cancel(context.Canceled) }
}
