package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Definitions finds the definition that a run began with.
type Definitions interface {
	Revision(ctx context.Context, agent, revision string) (*agents.Definition, error)
}

// Activities are the side effects of runs. All fields must be set before Register; the value is
// used concurrently.
type Activities struct {
	Log     *stream.Log
	Agents  Definitions
	Models  map[string]llm.Model // by provider
	Tools   *tools.Registry
	Cancels *stream.Cancels
	// Presence tells others what this worker does, so that they take over if it dies. nil = nobody
	// else could.
	Presence Presence
}

// Presence notes attempts by their task tokens.
type Presence interface {
	Begin(ctx context.Context, token []byte) (end func(), err error)
}

// Register makes a worker run the activities.
func (a *Activities) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.CallModel, activity.RegisterOptions{Name: workflows.ActivityCallModel})
	r.RegisterActivityWithOptions(a.CallTool, activity.RegisterOptions{Name: workflows.ActivityCallTool})
	r.RegisterActivityWithOptions(a.Finish, activity.RegisterOptions{Name: workflows.ActivityFinish})
}

func runOf(r workflows.Run) stream.Run {
	return stream.Run{Thread: stream.Thread{Tenant: r.Tenant, ID: r.Thread}, ID: r.ID}
}

func mainPlace(s workflows.Step, step string) stream.Place {
	return stream.Place{Run: runOf(s.Run), Lane: stream.LaneMain, Step: step, Execution: s.Execution, After: s.After}
}

// enter begins an attempt at a step of a run: it is seen to be alive, taken over if this worker dies,
// and stopped if the run is cancelled. leave must be called.
func (a *Activities) enter(ctx context.Context, run workflows.Run) (_ context.Context, leave func(), err error) {
	gone := func() {}
	if a.Presence != nil {
		if gone, err = a.Presence.Begin(ctx, activity.GetInfo(ctx).TaskToken); err != nil {
			return nil, nil, err
		}
	}
	stop := heartbeat(ctx)
	ctx, release := a.Cancels.Context(ctx, runOf(run))
	return ctx, func() { release(); stop(); gone() }, nil
}

// heartbeatInterval keeps three beats within the timeout.
const heartbeatInterval = 10 * time.Second

// heartbeat reports that the activity is alive, on a timer: models are silent for long. The
// returned function ends it and waits.
func heartbeat(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(heartbeatInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}

// closing is how long an activity may take to write its last words after its context has ended.
const closing = 10 * time.Second

// afterwards is a context for what must still be written when ctx has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), closing)
}
