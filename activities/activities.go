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
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// Definitions finds the definition of an agent's revision.
type Definitions interface {
	Revision(ctx context.Context, agent, revision string) (*agents.Definition, error)
	// Latest is the current revision of an agent, for subagents and handoffs.
	Latest(ctx context.Context, agent string) (catalog.Published, error)
}

// Activities are the side effects of runs. All fields must be set before Register. It is safe for
// concurrent use.
type Activities struct {
	Log       *stream.Log
	Snapshots *snapshot.Store // of Log
	Agents    Definitions
	Models    map[string]llm.Model // by provider
	Tools     *tools.Registry
	Cancels   *stream.Cancels
	// ToolGrace is how long a step waits for a worker that has its agent's tools. 0 =
	// DefaultToolGrace.
	ToolGrace time.Duration
	// Inbox lists the open interrupts. Webhooks has the receivers of their events, and
	// StartDelivery starts the delivery of one event to one receiver, once. nil = there are none.
	Inbox         *inbox.Store
	Webhooks      *webhook.Sender
	StartDelivery func(ctx context.Context, d runs.Delivery) error
	// Queues knows which task queues have workers. nil = all have.
	Queues Queues
	// Schedules has the definitions of schedules, and Dispatch starts their runs.
	Schedules *schedules.Store
	Dispatch  *dispatch.Dispatcher
	// Prices are those of models, nil = unknown. Budget bounds what tenants use in a day, nil =
	// unbounded.
	Prices *budget.File
	Budget *budget.Ledger
	// Presence announces the attempts of this worker, so that others take over if it dies. nil = no
	// worker could.
	Presence Presence
}

// Queues knows which task queues have workers, except for the one of all workers.
type Queues interface {
	Served(queue string) bool
}

// Presence notes attempts by their task tokens.
type Presence interface {
	Begin(ctx context.Context, token []byte) (end func(), err error)
}

// RegisterTools registers the activity of a worker with a task queue of its own: tool calls.
func (a *Activities) RegisterTools(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.CallTool, activity.RegisterOptions{Name: runs.ActivityCallTool})
}

// Register registers all activities.
func (a *Activities) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.CallModel, activity.RegisterOptions{Name: runs.ActivityCallModel})
	a.RegisterTools(r)
	r.RegisterActivityWithOptions(a.Await, activity.RegisterOptions{Name: runs.ActivityAwaitQueue})
	r.RegisterActivityWithOptions(a.Hold, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	r.RegisterActivityWithOptions(a.Keep, activity.RegisterOptions{Name: runs.ActivityStoreResult})
	r.RegisterActivityWithOptions(a.Advance, activity.RegisterOptions{Name: runs.ActivityAdvance})
	r.RegisterActivityWithOptions(a.AskLimit, activity.RegisterOptions{Name: runs.ActivityLimitInterrupt})
	r.RegisterActivityWithOptions(a.Answer, activity.RegisterOptions{Name: runs.ActivityAnswerCall})
	r.RegisterActivityWithOptions(a.Finish, activity.RegisterOptions{Name: runs.ActivityFinish})
	r.RegisterActivityWithOptions(a.Notify, activity.RegisterOptions{Name: runs.ActivityNotify})
	r.RegisterActivityWithOptions(a.Deliver, activity.RegisterOptions{Name: runs.ActivityDeliver})
	r.RegisterActivityWithOptions(a.Fire, activity.RegisterOptions{Name: runs.ActivityFire})
	r.RegisterActivityWithOptions(a.Standing, activity.RegisterOptions{Name: runs.ActivityRunStatus})
	r.RegisterActivityWithOptions(a.Withdraw, activity.RegisterOptions{Name: runs.ActivityCancelRun})
}

func runOf(r runs.Ref) stream.Run {
	return stream.Run{Thread: stream.Thread{Tenant: r.Tenant, ID: r.Thread}, ID: r.ID}
}

// agentPlace returns the place of the agent of a step.
func agentPlace(s runs.Step, step string) stream.Place {
	p := stream.Place{Run: runOf(s.Run), Lane: stream.LaneMain, Step: step, Execution: s.Execution, After: s.After}
	if b := s.Child; b != nil {
		for _, i := range b.Lanes {
			p.Lane = p.Lane.Subagent(i)
		}
		p.Since, p.Subagent = b.Since, subagentID(b.CallID)
	}
	return p
}

// toolPlace returns the place of a tool call of that agent.
func toolPlace(in runs.ToolCall) stream.Place {
	p := agentPlace(in.Step, in.ID)
	p.Lane, p.After = p.Lane.Tool(in.Lane), in.LaneAfter
	if in.LaneAfter == 0 {
		p.Since = max(p.Since, in.After)
	}
	return p
}

// enter is attend, and ends the attempt if the run is cancelled.
func (a *Activities) enter(ctx context.Context, s runs.Step) (_ context.Context, leave func(), err error) {
	ctx, end, err := a.attend(ctx)
	if err != nil || s.Compensates {
		return ctx, end, err
	}
	ctx, release := a.Cancels.Context(ctx, runOf(s.Run))
	return ctx, func() { release(); end() }, nil
}

// cancelRequested reports whether a cancel of the step's run was requested.
func (a *Activities) cancelRequested(ctx context.Context, s runs.Step) (bool, error) {
	if s.Compensates {
		return false, nil
	}
	return a.Log.CancelRequested(ctx, runOf(s.Run))
}

// attend begins an attempt of a step: it sends heartbeats, and announces the attempt so that
// another worker takes over if this one dies. The caller calls leave.
func (a *Activities) attend(ctx context.Context) (_ context.Context, leave func(), err error) {
	ctx, stop := heartbeat(ctx) // first: what follows waits for the log
	gone := func() {}
	if a.Presence != nil {
		if gone, err = a.Presence.Begin(ctx, activity.GetInfo(ctx).TaskToken); err != nil {
			stop()
			return nil, nil, err
		}
	}
	return ctx, func() { stop(); gone() }, nil
}

// heartbeatInterval allows three heartbeats within the timeout.
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
				if err := sendHeartbeat(ctx); over(err) {
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, func() { cancel(context.Canceled); wait.Wait() }
}

// sendHeartbeat sends one heartbeat, and retries until the next is due. It carries how often the
// step has failed, for the next attempt.
func sendHeartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	return sendBeat(ctx, failuresBefore(ctx))
}

// sendBeat is replaced by tests before anything runs: the client of Temporal's test environment
// ends the process.
var sendBeat = func(ctx context.Context, failures int) error {
	return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, activity.GetInfo(ctx).TaskToken, failures)
}

// over reports whether the answer to a heartbeat ends the attempt. No answer does not.
func over(err error) bool {
	var gone *serviceerror.NotFound
	return temporal.IsCanceledError(err) || errors.As(err, &gone)
}

// closing bounds how long an activity may write after its context has ended.
const closing = 10 * time.Second

// errUnsaid tells that the log did not take the last records in time.
var errUnsaid = fmt.Errorf("activities: the last words: %w", stream.ErrUnavailable)

// contextAfter returns a context for records that must be written after ctx has ended. Until ctx
// ends, the log is waited for without a bound: the answer of a model, or of a tool that may not be
// called twice, must not be lost in an outage.
func contextAfter(ctx context.Context) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		over := time.NewTimer(closing)
		defer over.Stop()
		select {
		case <-over.C:
			cancel(errUnsaid)
		case <-last.Done():
		}
	})
	return last, func() { stop(); cancel(context.Canceled) }
}
