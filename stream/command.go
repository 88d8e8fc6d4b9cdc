package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// A command to a run is durable in the log or in Temporal. Core NATS messages announce it to the
// workers, and arrive within a millisecond: a cancel stops the model call, and an update has a
// model call leave the workflow task that the update waits for. The announcements are best effort.

// commandSubjects returns the subject of all announcements of this log. It is not a subject of the
// stream.
func (l *Log) commandSubjects() string { return l.prefix + "-command.>" }

// cancelSubject returns the subject that announces cancels of a run.
func (l *Log) cancelSubject(r Run) string {
	return l.prefix + "-command.cancel." + Token(r.Tenant) + "." + Token(r.Thread.ID) + "." + Token(r.ID)
}

// updateSubject returns the subject that announces updates of a thread's workflow.
func (l *Log) updateSubject(t Thread) string {
	return l.prefix + "-command.update." + Token(t.Tenant) + "." + Token(t.ID)
}

// AnnounceCancel announces to all workers that a run is cancelled. A worker that misses it learns of
// the cancel by Temporal.
func (l *Log) AnnounceCancel(r Run) error {
	if err := l.nc.Publish(l.cancelSubject(r), nil); err != nil {
		return fmt.Errorf("stream: announce cancel: %w", err)
	}
	return nil
}

// AnnounceUpdate announces to all workers that an update waits for a task of the thread's workflow.
func (l *Log) AnnounceUpdate(t Thread) error {
	if err := l.nc.Publish(l.updateSubject(t), nil); err != nil {
		return fmt.Errorf("stream: announce update: %w", err)
	}
	return nil
}

// Commands receives the announcements of commands for a worker's activities. A worker has one. It
// is safe for concurrent use; the caller calls Stop.
type Commands struct {
	log *Log
	sub *nats.Subscription

	mu        sync.Mutex
	lastID    int                                // ID of the last registered receiver
	receivers map[string]map[int]func(*nats.Msg) // by subject, then by ID; they do not block
}

// ErrCancelled is the cause of a context whose run is cancelled.
var ErrCancelled = fmt.Errorf("stream: the run is cancelled: %w", context.Canceled)

// ListenCommands subscribes to the commands for all runs. The caller calls Stop.
func (l *Log) ListenCommands() (*Commands, error) {
	c := &Commands{log: l, receivers: map[string]map[int]func(*nats.Msg){}}
	sub, err := l.nc.Subscribe(l.commandSubjects(), func(m *nats.Msg) { c.deliver(m) })
	if err != nil {
		return nil, fmt.Errorf("stream: listen for commands: %w", err)
	}
	c.sub = sub
	return c, nil
}

// Stop ends the subscription. Contexts and channels stay as they are.
func (c *Commands) Stop() error { return c.sub.Unsubscribe() }

// Context returns a child of ctx that ends with the cause ErrCancelled when the run is cancelled.
// The caller calls the returned function when the work is done. A cancel from before the call is
// not noticed (see Log.CancelRequested).
func (c *Commands) Context(ctx context.Context, r Run) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	remove := c.add(c.log.cancelSubject(r), func(*nats.Msg) { cancel(ErrCancelled) })
	return ctx, func() {
		cancel(nil)
		remove()
	}
}

// Updates returns a channel that is closed when an update of the thread's workflow is announced.
// The caller calls the returned function when it waits no longer. Announcements from before the call
// are not noticed; those of a waiting update are repeated.
func (c *Commands) Updates(t Thread) (<-chan struct{}, func()) {
	updated := make(chan struct{})
	announced := sync.OnceFunc(func() { close(updated) })
	return updated, c.add(c.log.updateSubject(t), func(*nats.Msg) { announced() })
}

// add registers a receiver, and returns the function that removes it.
func (c *Commands) add(subject string, receive func(*nats.Msg)) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	id := c.lastID
	if c.receivers[subject] == nil {
		c.receivers[subject] = map[int]func(*nats.Msg){}
	}
	c.receivers[subject][id] = receive
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.receivers[subject], id)
		if len(c.receivers[subject]) == 0 {
			delete(c.receivers, subject)
		}
	}
}

// deliver gives a message to all receivers of its subject.
func (c *Commands) deliver(m *nats.Msg) {
	c.mu.Lock()
	receivers := slices.Collect(maps.Values(c.receivers[m.Subject]))
	c.mu.Unlock()
	for _, receive := range receivers {
		receive(m)
	}
}
