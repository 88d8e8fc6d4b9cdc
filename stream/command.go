package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
)

// A cancel reaches the worker in three ways: a record on the run's control lane, so that it is not
// lost (proposal.go); Temporal's cancellation, which decides; and a core NATS message, which
// arrives within a millisecond and stops the model call. This file has the third.

// cancelSubject returns the subject of a run's cancel messages. It is not a subject of the stream.
func (l *Log) cancelSubject(r Run) string {
	return l.prefix + "-cancel." + Token(r.Tenant) + "." + Token(r.Thread.ID) + "." + Token(r.ID)
}

// AnnounceCancel sends the cancel message of a run to all workers. It is best effort: a worker that
// is not connected learns of the cancel by Temporal.
func (l *Log) AnnounceCancel(r Run) error {
	if err := l.nc.Publish(l.cancelSubject(r), nil); err != nil {
		return fmt.Errorf("stream: announce cancel: %w", err)
	}
	return nil
}

// Cancels ends the contexts of a worker's activities when their run is cancelled. A worker has one.
// It is safe for concurrent use; the caller calls Stop.
type Cancels struct {
	log *Log
	sub *nats.Subscription

	mu      sync.Mutex
	lastID  int                                        // ID of the last registered context
	cancels map[string]map[int]context.CancelCauseFunc // by subject, then by ID
}

// ErrCancelled is the cause of a context whose run is cancelled.
var ErrCancelled = fmt.Errorf("stream: the run is cancelled: %w", context.Canceled)

// ListenCancels subscribes to the cancel messages of all runs. The caller calls Stop.
func (l *Log) ListenCancels() (*Cancels, error) {
	c := &Cancels{log: l, cancels: map[string]map[int]context.CancelCauseFunc{}}
	sub, err := l.nc.Subscribe(l.prefix+"-cancel.>", func(m *nats.Msg) { c.cancel(m.Subject) })
	if err != nil {
		return nil, fmt.Errorf("stream: listen for cancels: %w", err)
	}
	c.sub = sub
	return c, nil
}

// Stop ends the subscription. Contexts stay as they are.
func (c *Cancels) Stop() error { return c.sub.Unsubscribe() }

// Context returns a child of ctx that ends with the cause ErrCancelled when the run is cancelled.
// The caller calls the returned function when the work is done. A cancel from before the call is
// not noticed (see Log.CancelRequested).
func (c *Cancels) Context(ctx context.Context, r Run) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	subject := c.log.cancelSubject(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	id := c.lastID
	if c.cancels[subject] == nil {
		c.cancels[subject] = map[int]context.CancelCauseFunc{}
	}
	c.cancels[subject][id] = cancel
	return ctx, func() {
		cancel(nil)
		c.remove(subject, id)
	}
}

// remove forgets a context.
func (c *Cancels) remove(subject string, id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cancels[subject], id)
	if len(c.cancels[subject]) == 0 {
		delete(c.cancels, subject)
	}
}

// cancel ends all contexts with this subject.
func (c *Cancels) cancel(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.cancels[subject] {
		cancel(ErrCancelled)
	}
}
