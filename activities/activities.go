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
	"github.com/perdure/perdure/internal/budget"
	"github.com/perdure/perdure/internal/dispatch"
	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/internal/schedules"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// Definitions finds the definition that a run began with.
type Definitions interface {
	Revision(ctx context.Context, agent, revision string) (*agents.Definition, error)
	// Latest is what an agent is now, for work that is handed to it.
	Latest(ctx context.Context, agent string) (catalog.Published, error)
}

// Activities are the side effects of runs. All fields must be set before Register; the value is
// used concurrently.
type Activities struct {
	Log       *stream.Log
	Snapshots *snapshot.Store // of Log
	Agents    Definitions
	Models    map[string]llm.Model // by provider
	Tools     *tools.Registry
	Cancels   *stream.Cancels
	// ToolGrace is how long a step waits for a worker that has its agent's tools. 0 = DefaultToolGrace.
	ToolGrace time.Duration
	// Inbox is told which approvals wait, and Webhooks what happens to them, by deliveries that StartDelivery
	// starts, each once. nil = nobody is told.
	Inbox         *inbox.Store
	Webhooks      *webhook.Sender
	StartDelivery func(ctx context.Context, d runs.Delivery) error
	// Queues knows which task queues there are workers for. nil = all of them.
	Queues Queues
	// Schedules has what schedules say, and Dispatch brings their runs to threads.
	Schedules *schedules.Store
	Dispatch  *dispatch.Dispatcher
	// Prices are those of models, Budget what tenants may use in a day; nil = none is known, and as much as they like.
	Prices *budget.File
	Budget *budget.Ledger
	// Presence tells others what this worker does, so that they take over if it dies. nil = nobody
	// else could.
	Presence Presence
}

// Queues knows which task queues workers serve, besides the one of all workers.
type Queues interface {
	Served(queue string) bool
}

// Presence notes attempts by their task tokens.
type Presence interface {
	Begin(ctx context.Context, token []byte) (end func(), err error)
}

// RegisterTools makes a worker of a task queue of its own run what goes there.
func (a *Activities) RegisterTools(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.CallTool, activity.RegisterOptions{Name: runs.ActivityCallTool})
}

// Register makes a worker run the activities.
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

// speaking is where the agent of a step speaks.
func speaking(s runs.Step, step string) stream.Place {
	p := stream.Place{Run: runOf(s.Run), Lane: stream.LaneMain, Step: step, Execution: s.Execution, After: s.After}
	if b := s.Child; b != nil {
		for _, i := range b.Lanes {
			p.Lane = p.Lane.Subagent(i)
		}
		p.Since, p.Subagent = b.Since, subagentID(b.CallID)
	}
	return p
}

// working is where a tool call of that agent has its result.
func working(in runs.ToolCall) stream.Place {
	p := speaking(in.Step, in.ID)
	p.Lane, p.After = p.Lane.Tool(in.Lane), in.LaneAfter
	if in.LaneAfter == 0 {
		p.Since = max(p.Since, in.After)
	}
	return p
}

// enter is attend, and stops the attempt if the run is cancelled.
func (a *Activities) enter(ctx context.Context, s runs.Step) (_ context.Context, leave func(), err error) {
	ctx, end, err := a.attend(ctx)
	if err != nil || s.Compensates {
		return ctx, end, err
	}
	ctx, release := a.Cancels.Context(ctx, runOf(s.Run))
	return ctx, func() { release(); end() }, nil
}

// cancelRequested tells whether a step is not to be done, since somebody has cancelled the run.
func (a *Activities) cancelRequested(ctx context.Context, s runs.Step) (bool, error) {
	if s.Compensates {
		return false, nil
	}
	return a.Log.CancelRequested(ctx, runOf(s.Run))
}

// attend begins an attempt at a step: it is seen to be alive, and taken over if this worker dies. leave must
// be called.
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

// heartbeatInterval keeps three beats within the timeout.
const heartbeatInterval = 10 * time.Second

// heartbeat reports that the activity is alive, on a timer: models are silent for long. The context
// ends when Temporal answers that the activity is cancelled or the attempt over. stop ends the beats and
// waits.
//
// The beats go past the SDK's own, which come only when four fifths of the timeout have passed, and
// end the attempt when Temporal does not answer: an outage of some seconds would cost a healthy one.
func heartbeat(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(heartbeatInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := beat(ctx); over(err) {
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

// beat sends one heartbeat, and tries until the next is due. It carries how often the step has failed,
// for the attempt that may follow.
func beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	return sendBeat(ctx, failuresBefore(ctx))
}

// sendBeat is replaced by tests, before anything runs: Temporal's test environment takes heartbeats, and has a client that
// ends the process.
var sendBeat = func(ctx context.Context, failures int) error {
	return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, activity.GetInfo(ctx).TaskToken, failures)
}

// over tells whether the answer to a heartbeat ends the attempt. That there is none does not.
func over(err error) bool {
	var gone *serviceerror.NotFound
	return temporal.IsCanceledError(err) || errors.As(err, &gone)
}

// closing is how long an activity may take to write its last words after its context has ended.
const closing = 10 * time.Second

// errUnsaid is why last words stay unsaid: the log did not take them in time.
var errUnsaid = fmt.Errorf("activities: the last words: %w", stream.ErrUnavailable)

// afterwards is a context for what must still be written, also when ctx has ended. As long as it has not, the
// log is waited for: the answer of a model, or of a tool that may not be called twice, is not given up
// because the log is away.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
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
