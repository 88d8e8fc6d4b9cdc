package presence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Task is a task of Temporal that a worker has in progress: an attempt of an activity, or a workflow
// task. Token is its task token, which identifies it.
type Task struct {
	Token      []byte `json:"token"`
	IsWorkflow bool   `json:"workflow,omitempty"`
}

// Poller is a worker of Temporal's SDK in a process, with its task queue. A process has one for each
// queue.
type Poller struct {
	Queue string `json:"queue"`
	// InstanceKey identifies the worker's polls.
	InstanceKey string `json:"instance"`
	// StickyQueue is the queue of the workflows in the process's cache; "" = the worker executes none.
	StickyQueue string `json:"sticky,omitempty"`
}

// Tasks are the tasks that a process has in progress. [Tasks.Intercept] adds workflow tasks,
// [Presence.Begin] adds attempts. It also has the pollers of the process. A Presence stores them. NewTasks makes it. It is safe for
// concurrent use.
type Tasks struct {
	mu        sync.Mutex
	tasks     map[string]*task  // workflow tasks by run ID, attempts by token
	pollers   map[string]Poller // by instance key
	isLeaving bool              // an attempt that ends stays (Presence.Leave)
	// version counts the changes of tasks that have to be stored; stored is the version that is.
	version, stored int
	wakeups         chan struct{} // capacity 1: there is a version to store
	storedChanged   chan struct{} // closed and replaced when stored changes
}

// task is a Task, and the version in which it was added.
type task struct {
	Task
	attempt  int32     // of a workflow task, from 1
	received time.Time // a workflow task
	version  int
}

// NewTasks returns an empty value.
func NewTasks() *Tasks {
	return &Tasks{tasks: map[string]*task{}, pollers: map[string]Poller{}, wakeups: make(chan struct{}, 1), storedChanged: make(chan struct{})}
}

// Intercept is an interceptor of unary gRPC calls for the connection of a worker to Temporal. It adds
// the workflow tasks that the worker receives, and removes those that it completes or fails. The SDK
// shows their tokens nowhere else. It adds the pollers, too.
func (t *Tasks) Intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	switch r := request.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		t.addPoller(r.GetWorkerInstanceKey(), r.GetTaskQueue())
	case *workflowservice.PollActivityTaskQueueRequest:
		t.addPoller(r.GetWorkerInstanceKey(), r.GetTaskQueue())
	}
	err := invoke(ctx, method, request, reply, conn, options...)
	switch r := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		t.endWorkflowTask(r.GetTaskToken(), err)
	case *workflowservice.RespondWorkflowTaskFailedRequest:
		t.endWorkflowTask(r.GetTaskToken(), err)
	}
	if err != nil {
		return err
	}
	switch r := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		t.addWorkflowTask(r)
	case *workflowservice.StartWorkflowExecutionResponse:
		t.addWorkflowTask(r.GetEagerWorkflowTask())
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		t.addWorkflowTask(r.GetWorkflowTask())
	}
	return nil
}

// addPoller adds a poller, or its sticky queue.
func (t *Tasks) addPoller(instanceKey string, queue *taskqueue.TaskQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.pollers[instanceKey]
	p := Poller{InstanceKey: instanceKey, Queue: queue.GetName(), StickyQueue: before.StickyQueue}
	if queue.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
		p.Queue, p.StickyQueue = queue.GetNormalName(), queue.GetName()
	}
	if p != before {
		t.pollers[instanceKey] = p
		t.version++
		t.wake()
	}
}

// addWorkflowTask adds a workflow task, unless the response has none.
func (t *Tasks) addWorkflowTask(r *workflowservice.PollWorkflowTaskQueueResponse) {
	if len(r.GetTaskToken()) == 0 {
		return
	}
	t.add(r.GetWorkflowExecution().GetRunId(), task{Task: Task{Token: r.GetTaskToken(), IsWorkflow: true}, attempt: r.GetAttempt(), received: time.Now()})
}

// endWorkflowTask removes a workflow task of which err is the answer to its report. If Temporal has
// not answered, the task stays: Temporal may have it still.
func (t *Tasks) endWorkflowTask(token []byte, err error) {
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.tasks, func(_ string, other *task) bool { return other.IsWorkflow && slices.Equal(other.Token, token) })
}

// add adds a task, and wakes the goroutine that stores it.
func (t *Tasks) add(key string, added task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	added.version = t.version
	t.tasks[key] = &added
	t.wake()
}

// endAttempt removes an attempt. It need not be stored soon: to fail a task that has ended changes
// nothing.
func (t *Tasks) endAttempt(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isLeaving {
		delete(t.tasks, key)
	}
}

// errNoTask tells that the process has not received the task that it is asked for.
var errNoTask = errors.New("presence: the process has no such task")

// awaitStored blocks until a task is stored, and returns it. The error is errNoTask, or ctx's cause.
func (t *Tasks) awaitStored(ctx context.Context, key string) (task, error) {
	for {
		t.mu.Lock()
		awaited := t.tasks[key]
		isStored, changed := awaited != nil && awaited.version <= t.stored, t.storedChanged
		t.wake()
		t.mu.Unlock()
		switch {
		case awaited == nil:
			return task{}, fmt.Errorf("%w: %q", errNoTask, key)
		case isStored:
			return *awaited, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return task{}, context.Cause(ctx)
		}
	}
}

// wake wakes the goroutine that stores the tasks. It does not block.
func (t *Tasks) wake() {
	select {
	case t.wakeups <- struct{}{}:
	default:
	}
}

// record is what the bucket has of a worker.
type record struct {
	Tasks   []Task   `json:"tasks"`
	Pollers []Poller `json:"pollers"`
}

// record returns the tasks in progress and the pollers, and their version.
func (t *Tasks) record() (r record, version int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Tasks = make([]Task, 0, len(t.tasks))
	for _, k := range t.tasks {
		r.Tasks = append(r.Tasks, k.Task)
	}
	r.Pollers = slices.Collect(maps.Values(t.pollers))
	return r, t.version
}

// setStored notes that a version is stored, and wakes those who wait for it.
func (t *Tasks) setStored(version int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored = version
	close(t.storedChanged)
	t.storedChanged = make(chan struct{})
}

// leave keeps the attempts that end from now on.
func (t *Tasks) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isLeaving = true
}
