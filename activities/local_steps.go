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

// A step begins within the workflow task that asks for it, as a local activity: a model step, a tool
// step, or an advance of a pipeline. Most steps end there, and cost no round trip to Temporal:
//
//	workflow task ──► local activity ──► LocalSteps.begin ──► the attempt (a goroutine of its own)
//	                       │ the answer, or after withinTask:            │
//	                       ▼                                             │
//	                  ContinuesOn ──► activity on this process's queue ──┘ awaits the same attempt
//
// A step leaves its task after a time, or when an update waits for the workflow, because Temporal
// delivers nothing to a workflow while a task of it is under way. The goroutine continues, and the
// activity that the workflow schedules next awaits it. Nothing in the log changes hands: the step
// keeps its attempt. If the process dies, the activity is scheduled for any worker, and makes
// another attempt of the step.

// maxWithinTasks bounds the steps that are within workflow tasks. Each takes a slot for local
// activities, and in most cases one for workflow tasks, of which a worker has 1,000; the other tasks
// need slots too.
const maxWithinTasks = 500

// unclaimedTimeout is how long LocalSteps keeps the error of a step that no activity awaits, and how
// long such a step may take after its deadline.
const unclaimedTimeout = 10 * time.Second

// LocalSteps are the steps of a worker that began within workflow tasks. NewLocalSteps makes it; Leave
// and Stop end it. It is safe for concurrent use.
type LocalSteps struct {
	queue string                  // the task queue of this process
	ended context.Context         // ends with Stop
	end   context.CancelCauseFunc // ends ended
	wait  sync.WaitGroup          // for the goroutines of the steps

	mu          sync.Mutex
	steps       map[stepKey]*localStep
	withinTasks int           // local activities that await a step
	leaving     chan struct{} // closed by Leave: no step begins any more
	claimed     chan struct{} // capacity 1: a step that has left its task is awaited, or has ended
}

// stepKey identifies a step of a run.
type stepKey struct {
	Run       runs.Ref
	Execution string
	Step      string
}

func keyOf(s runs.Step) stepKey { return stepKey{Run: s.Run, Execution: s.Execution, Step: s.ID} }

// localStep is an attempt of a step in progress, or one that has failed and whose error nobody has taken.
type localStep struct {
	key    stepKey
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed after answer and err are set
	answer any
	err    error // as Temporal gets it

	hasLeft   bool // its workflow task, for an activity; guarded by LocalSteps.mu
	isClaimed bool // an activity awaits it, or has awaited it; guarded by LocalSteps.mu
}

// NewLocalSteps returns the local steps of a worker. queue is a task queue that only this process
// serves. The caller calls Stop.
func NewLocalSteps(queue string) *LocalSteps {
	l := &LocalSteps{queue: queue, steps: map[stepKey]*localStep{}, leaving: make(chan struct{}), claimed: make(chan struct{}, 1)}
	l.ended, l.end = context.WithCancelCause(context.Background())
	return l
}

// Leave prepares the stop of the worker: no step begins any more, and all steps leave their workflow
// tasks. It waits until activities await them, so that the worker's stop timeout applies to them, or
// until ctx ends.
func (l *LocalSteps) Leave(ctx context.Context) {
	l.mu.Lock()
	if !l.isLeaving() {
		close(l.leaving)
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		unclaimed := l.withinTasks
		for _, step := range l.steps {
			if step.hasLeft && !step.isClaimed {
				unclaimed++
			}
		}
		l.mu.Unlock()
		if unclaimed == 0 {
			return
		}
		select {
		case <-l.claimed:
		case <-ctx.Done():
			return
		}
	}
}

// isLeaving reports whether Leave was called. The caller holds mu.
func (l *LocalSteps) isLeaving() bool {
	select {
	case <-l.leaving:
		return true
	default:
		return false
	}
}

// Stop ends all steps, as the stop of a worker ends its activities, and waits for their goroutines.
func (l *LocalSteps) Stop() {
	l.mu.Lock()
	if !l.isLeaving() {
		close(l.leaving)
	}
	l.mu.Unlock()
	l.end(worker.ErrWorkerShutdown)
	l.wait.Wait()
}

// enterTask takes room for a step within a workflow task, unless there is none. The caller calls
// leaveTask.
func (l *LocalSteps) enterTask() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.withinTasks >= maxWithinTasks || l.isLeaving() {
		return false
	}
	l.withinTasks++
	return true
}

// leaveTask gives the room of a step back. step has left the task for an activity; nil = it has
// ended, or none began.
func (l *LocalSteps) leaveTask(step *localStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withinTasks--
	if step != nil {
		step.hasLeft = true
	}
	l.wake()
}

// wake wakes Leave. It does not block.
func (l *LocalSteps) wake() {
	select {
	case l.claimed <- struct{}{}:
	default:
	}
}

// begin begins an attempt of a step with do, in a goroutine of its own. If one is in progress, begin
// joins it: Temporal has repeated the workflow task. The attempt has the values of ctx, and does not
// end with ctx. The activity that awaits the step ends it at the deadline of ctx; a step without such
// an activity ends unclaimedTimeout after that deadline.
func (l *LocalSteps) begin(ctx context.Context, key stepKey, do func(context.Context) (any, error)) *localStep {
	l.mu.Lock()
	defer l.mu.Unlock()
	if step := l.steps[key]; step != nil {
		return step
	}
	step := &localStep{key: key, done: make(chan struct{})}
	step.ctx, step.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.steps[key] = step
	l.wait.Go(func() {
		defer step.cancel(nil)
		defer context.AfterFunc(l.ended, func() { step.cancel(context.Cause(l.ended)) })()
		work, release := context.WithDeadline(step.ctx, activity.GetInfo(ctx).Deadline.Add(unclaimedTimeout))
		defer release()
		step.answer, step.err = do(work)
		close(step.done)
		if step.err == nil { // the log has the answer
			l.remove(step)
			return
		}
		time.AfterFunc(unclaimedTimeout, func() { l.remove(step) })
	})
	return step
}

// claim returns a step for an activity that awaits it; nil = this process does not have it.
func (l *LocalSteps) claim(key stepKey) *localStep {
	l.mu.Lock()
	defer l.mu.Unlock()
	step := l.steps[key]
	if step != nil {
		step.isClaimed = true
		l.wake()
	}
	return step
}

// Find answers the question of another worker: with the task queue of this process if it has the
// step, else with nil. The question is a stepKey in JSON.
func (l *LocalSteps) Find(question []byte) []byte {
	var key stepKey
	if err := json.Unmarshal(question, &key); err != nil {
		return nil // of a worker with another version
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.steps[key] == nil {
		return nil
	}
	return []byte(l.queue)
}

// ask returns the task queue of another process that has a step; "" = this process has it, or none
// has answered.
func (l *LocalSteps) ask(ctx context.Context, workers *stream.Commands, key stepKey) (queue string) {
	l.mu.Lock()
	isHere := l.steps[key] != nil
	l.mu.Unlock()
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

// remove forgets a step.
func (l *LocalSteps) remove(step *localStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.steps[step.key] == step {
		delete(l.steps, step.key)
	}
	l.wake()
}

// take returns the end of a step, and forgets the step.
func (l *LocalSteps) take(step *localStep) (any, error) {
	<-step.done
	l.remove(step)
	return step.answer, step.err
}

// await waits for a step that has left its task. The end of ctx ends the step, with the same cause.
func (l *LocalSteps) await(ctx context.Context, step *localStep) (any, error) {
	defer context.AfterFunc(ctx, func() { step.cancel(context.Cause(ctx)) })()
	return l.take(step)
}
