package stuck

import (
	"fmt"
	"time"
)

// reason returns what an operator should do about a task. polled is when a worker polled the task
// queue last; zero = no worker did. A live worker with room takes a task at once. So a worker that
// has polled since the task waits takes others first, and one that has not is dead, or has no room.
func (t *task) reason(polled time.Time) string {
	workers := "worker"
	if t.queue.buildID != "" {
		workers = fmt.Sprintf("worker of the version %q", t.queue.buildID)
	}
	switch {
	case t.isFailing:
		return fmt.Sprintf("the workflow task of the run fails again and again on the task queue %q: read the errors in the logs of its workers", t.queue.name)
	case polled.After(t.since):
		return fmt.Sprintf("no %s of the task queue %q has room for the run: start further ones", workers, t.queue.name)
	default:
		return fmt.Sprintf("no %s polls the task queue %q: start one", workers, t.queue.name)
	}
}
