package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Router ends the waits that events match. Each worker has one; they share the events. It is safe for
// concurrent use.
type Router struct {
	Store *Store
	Waits *Waits
	// Decide sends a decision to the workflow of a thread. isActive is false if the thread has no
	// workflow.
	Decide func(ctx context.Context, t stream.Thread, d runs.Decision) (result runs.DecisionResult, isActive bool, err error)
	// IsDecided reports whether the log has a decision of a thread as the one that was carried out.
	IsDecided func(ctx context.Context, t stream.Thread, d runs.Decision) (bool, error)
	// Trigger starts the runs that an event triggers. nil = none.
	Trigger func(ctx context.Context, e *Event) error
	// OnError is told of events that are attempted again.
	OnError func(error)

	mu      sync.Mutex
	scans   map[eventName]*scan // that have not begun to read
	reading chan struct{}       // has an element while a scan reads
}

// NewRouter returns a Router; the caller sets its functions before it is used.
func NewRouter(s *Store, w *Waits) *Router {
	return &Router{Store: s, Waits: w, scans: map[eventName]*scan{}, reading: make(chan struct{}, 1)}
}

// The consumer of the router. An event that is not acknowledged within ackWait is delivered again.
const (
	consumer    = "router"
	ackWait     = 30 * time.Second
	retryDelay  = time.Second
	maxBatch    = 256
	concurrency = 16
	fetchWait   = 5 * time.Second
)

// Run routes events until ctx ends, and waits for those under way.
func (r *Router) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.consume(ctx); err != nil && ctx.Err() == nil {
			r.OnError(err)
			pause := time.NewTimer(retryDelay)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
		}
	}
}

// consume takes batches of events until one fails.
func (r *Router) consume(ctx context.Context) error {
	c, err := r.Store.events.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: 4 * maxBatch, MaxDeliver: -1,
	})
	if err != nil {
		return fmt.Errorf("events: consumer: %w", err)
	}
	for ctx.Err() == nil {
		fetching, stop := context.WithTimeout(ctx, fetchWait)
		batch, err := c.Fetch(maxBatch, jetstream.FetchContext(fetching))
		if err != nil {
			stop()
			return fmt.Errorf("events: fetch: %w", err)
		}
		r.routeBatch(ctx, batch)
		stop()
		if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, jetstream.ErrNoMessages) {
			return fmt.Errorf("events: fetch: %w", err)
		}
	}
	return nil
}

// routeBatch routes the events of a batch as they arrive, up to concurrency at a time, and waits for
// them.
func (r *Router) routeBatch(ctx context.Context, batch jetstream.MessageBatch) {
	var wait sync.WaitGroup
	defer wait.Wait()
	turns := make(chan struct{}, concurrency)
	for m := range batch.Messages() {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if err := r.route(ctx, m); err != nil {
				r.OnError(err)
				_ = m.NakWithDelay(retryDelay) // otherwise it is delivered again after ackWait
				return
			}
			_ = m.Ack()
		})
	}
}

// route ends all waits that an event matches, and starts the runs that it triggers.
func (r *Router) route(ctx context.Context, m jetstream.Msg) error {
	e, err := r.Store.decode(ctx, m.Subject(), m.Data())
	if errors.Is(err, stream.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	// The event is durable: a wait that the bucket does not have now compares itself with the event.
	if err := r.Waits.catchUp(ctx); err != nil {
		return err
	}
	err = r.deliver(ctx, e, func(*Wait) bool { return true })
	if r.Trigger != nil {
		err = errors.Join(err, r.Trigger(ctx, e))
	}
	return err
}

// deliver ends the waits that an event matches and a filter accepts: one of each thread.
func (r *Router) deliver(ctx context.Context, e *Event, filter func(*Wait) bool) error {
	var failed error
	for _, w := range slices.DeleteFunc(r.Waits.matching(e), func(w *Wait) bool { return !filter(w) }) {
		if _, err := r.end(ctx, e, w); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// end ends a wait with an event. hasEnded is false if the thread has received the event for another
// wait, or another event or time has ended the wait: then the event is free for other waits of the
// thread.
func (r *Router) end(ctx context.Context, e *Event, w *Wait) (hasEnded bool, err error) {
	isMine, isNew, err := r.Store.claim(ctx, w, e)
	if err != nil || !isMine {
		return false, err
	}
	sum, content, err := e.decision(w)
	if err != nil {
		return false, err
	}
	run := stream.Run{Thread: w.thread(), ID: w.RunRef}
	proposal, err := r.Store.log.ProposeDecision(ctx, run, sum, content)
	if errors.Is(err, stream.ErrGone) { // the thread was deleted
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d := runs.Decision{CallID: w.CallID, Kind: runs.DecisionAnswer, Question: w.Number, Proposal: proposal.Seq, Digest: runs.ShortDigest(proposal.Digest)}
	result, isActive, err := r.Decide(ctx, run.Thread, d)
	switch {
	case err != nil:
		return false, err
	case isActive && result.Error == "":
		return true, nil // taken, or taken before
	case isNew:
		return false, r.free(ctx, e, w)
	}
	// An earlier attempt may have decided the wait, and the thread has continued.
	if decided, err := r.IsDecided(ctx, run.Thread, d); decided || err != nil {
		return decided, err
	}
	return false, r.free(ctx, e, w)
}

// free releases the claim of a wait that has ended otherwise, and offers the event to the other waits of
// the thread: one that opened meanwhile has seen the claim.
func (r *Router) free(ctx context.Context, e *Event, w *Wait) error {
	if err := errors.Join(r.Store.release(ctx, w, e), r.Store.Unregister(ctx, w), r.Waits.catchUp(ctx)); err != nil {
		return err
	}
	return r.deliver(ctx, e, func(other *Wait) bool {
		return other.Tenant == w.Tenant && other.ThreadID == w.ThreadID && other.ID != w.ID
	})
}
