package activities

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// A model call begins within the workflow task that asks for it, as a local activity. Most calls end
// there, and cost no round trip to Temporal:
//
//	workflow task ──► local activity ──► ModelCalls.begin ──► callModel (a goroutine of its own)
//	                       │ the answer, or after withinTask:           │
//	                       ▼                                            │
//	                  ContinuesOn ──► activity on this process's queue ─┘ awaits the same call
//
// A call leaves its task after a time, or when an update waits for the workflow, because Temporal
// delivers nothing to a workflow while a task of it is under way. The goroutine continues, and the
// activity that the workflow schedules next awaits it. Nothing in the log changes hands: the call
// keeps its attempt. If the process dies, the activity is scheduled for any worker, and makes
// another attempt of the step.

// maxWithinTasks bounds the calls that are within workflow tasks. Each takes a slot for workflow
// tasks and one for local activities, of which a worker has 1,000; the other tasks need slots too.
const maxWithinTasks = 500

// unclaimedTimeout is how long ModelCalls keeps the error of a call that no activity awaits, and how
// long such a call may take after its deadline.
const unclaimedTimeout = 10 * time.Second

// ModelCalls are the model calls of a worker that began within workflow tasks. NewModelCalls makes
// it; Leave and Stop end it. It is safe for concurrent use.
type ModelCalls struct {
	queue string                  // the task queue of this process
	ended context.Context         // ends with Stop
	end   context.CancelCauseFunc // ends ended
	wait  sync.WaitGroup          // for the goroutines of the calls

	mu          sync.Mutex
	calls       map[callKey]*activeCall
	withinTasks int           // local activities that await a call
	leaving     chan struct{} // closed by Leave: no call begins any more
	claimed     chan struct{} // capacity 1: a call that has left its task is awaited, or has ended
}

// callKey identifies a step of a run that calls a model.
type callKey struct {
	Run       runs.Ref
	Execution string
	Step      string
}

func keyOf(s runs.Step) callKey { return callKey{Run: s.Run, Execution: s.Execution, Step: s.ID} }

// activeCall is a model call in progress, or one that has failed and whose error no activity has taken.
type activeCall struct {
	key    callKey
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed after answer and err are set
	answer runs.ModelAnswer
	err    error // as Temporal gets it

	hasLeft   bool // its workflow task, for an activity; guarded by ModelCalls.mu
	isClaimed bool // an activity awaits it, or has awaited it; guarded by ModelCalls.mu
}

// NewModelCalls returns the model calls of a worker. queue is a task queue that only this process
// serves. The caller calls Stop.
func NewModelCalls(queue string) *ModelCalls {
	c := &ModelCalls{queue: queue, calls: map[callKey]*activeCall{}, leaving: make(chan struct{}), claimed: make(chan struct{}, 1)}
	c.ended, c.end = context.WithCancelCause(context.Background())
	return c
}

// Leave prepares the stop of the worker: no call begins any more, and all calls leave their workflow
// tasks. It waits until activities await them, so that the worker's stop timeout applies to them, or
// until ctx ends.
func (c *ModelCalls) Leave(ctx context.Context) {
	c.mu.Lock()
	if !c.isLeaving() {
		close(c.leaving)
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		unclaimed := c.withinTasks
		for _, call := range c.calls {
			if call.hasLeft && !call.isClaimed {
				unclaimed++
			}
		}
		c.mu.Unlock()
		if unclaimed == 0 {
			return
		}
		select {
		case <-c.claimed:
		case <-ctx.Done():
			return
		}
	}
}

// isLeaving reports whether Leave was called. The caller holds mu.
func (c *ModelCalls) isLeaving() bool {
	select {
	case <-c.leaving:
		return true
	default:
		return false
	}
}

// Stop ends all calls, as the stop of a worker ends its activities, and waits for their goroutines.
func (c *ModelCalls) Stop() {
	c.mu.Lock()
	if !c.isLeaving() {
		close(c.leaving)
	}
	c.mu.Unlock()
	c.end(worker.ErrWorkerShutdown)
	c.wait.Wait()
}

// enterTask takes room for a call within a workflow task, unless there is none. The caller calls
// leaveTask.
func (c *ModelCalls) enterTask() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withinTasks >= maxWithinTasks || c.isLeaving() {
		return false
	}
	c.withinTasks++
	return true
}

// leaveTask gives the room of a call back. call has left the task for an activity; nil = it has
// ended, or none began.
func (c *ModelCalls) leaveTask(call *activeCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withinTasks--
	if call != nil {
		call.hasLeft = true
	}
	c.wake()
}

// wake wakes Leave. It does not block.
func (c *ModelCalls) wake() {
	select {
	case c.claimed <- struct{}{}:
	default:
	}
}

// begin begins the call of a step with do, in a goroutine of its own. If the call is in progress,
// begin joins it: Temporal has repeated the workflow task. The call has the values of ctx, and does
// not end with ctx. The activity that awaits the call ends it at the deadline of ctx; a call without
// such an activity ends unclaimedTimeout after that deadline.
func (c *ModelCalls) begin(ctx context.Context, key callKey, do func(context.Context) (runs.ModelAnswer, error)) *activeCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[key]; call != nil {
		return call
	}
	call := &activeCall{key: key, done: make(chan struct{})}
	call.ctx, call.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.calls[key] = call
	c.wait.Go(func() {
		defer call.cancel(nil)
		defer context.AfterFunc(c.ended, func() { call.cancel(context.Cause(c.ended)) })()
		work, release := context.WithDeadline(call.ctx, activity.GetInfo(ctx).Deadline.Add(unclaimedTimeout))
		defer release()
		call.answer, call.err = do(work)
		close(call.done)
		if call.err == nil { // the log has the answer
			c.remove(call)
			return
		}
		time.AfterFunc(unclaimedTimeout, func() { c.remove(call) })
	})
	return call
}

// claim returns the call of a step for an activity that awaits it; nil = this process has none.
func (c *ModelCalls) claim(key callKey) *activeCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[key]
	if call != nil {
		call.isClaimed = true
		c.wake()
	}
	return call
}

// Find answers the question of another worker: with the task queue of this process if it has the
// call, else with nil. The question is a callKey in JSON.
func (c *ModelCalls) Find(question []byte) []byte {
	var key callKey
	if err := json.Unmarshal(question, &key); err != nil {
		return nil // of a worker with another version
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] == nil {
		return nil
	}
	return []byte(c.queue)
}

// ask returns the task queue of another process that has a call; "" = this process has it, or none
// has answered.
func (c *ModelCalls) ask(ctx context.Context, workers *stream.Commands, key callKey) (queue string) {
	c.mu.Lock()
	isHere := c.calls[key] != nil
	c.mu.Unlock()
	if isHere {
		return ""
	}
	question, err := json.Marshal(key)
	if err != nil {
		return ""
	}
	if queue = string(workers.Ask(ctx, question)); !strings.HasPrefix(queue, runs.ProcessQueuePrefix) {
		return "" // no answer, or not that of a worker
	}
	return queue
}

// remove forgets a call.
func (c *ModelCalls) remove(call *activeCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[call.key] == call {
		delete(c.calls, call.key)
	}
	c.wake()
}

// take returns the end of a call, and forgets the call.
func (c *ModelCalls) take(call *activeCall) (runs.ModelAnswer, error) {
	<-call.done
	c.remove(call)
	return call.answer, call.err
}

// await waits for a call that has left its task. The end of ctx ends the call, with the same cause.
func (c *ModelCalls) await(ctx context.Context, call *activeCall) (runs.ModelAnswer, error) {
	defer context.AfterFunc(ctx, func() { call.cancel(context.Cause(ctx)) })()
	return c.take(call)
}
