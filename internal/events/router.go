package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/internal/process/telemetry"
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
	// Trigger starts the runs that an event triggers, and returns how many triggers match it, and how
	// many runs it has started; seq is its sequence. It may be called again. nil = there are none.
	Trigger func(ctx context.Context, e *Event, seq uint64) (matching, started int, err error)
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
	ackWait     = 10 * time.Second
	retryDelay  = time.Second
	maxBatch    = 64
	concurrency = 16
)

// Run routes events until ctx ends, and waits for those under way.
func (r *Router) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.consume(ctx)
		if ctx.Err() != nil {
			return
		}
		r.OnError(err)
		_ = durations.Sleep(ctx, retryDelay)
	}
}

// consume routes events until ctx ends or the consumer is gone.
func (r *Router) consume(ctx context.Context) error {
	c, err := r.Store.events.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: 16 * maxBatch, MaxDeliver: -1,
	})
	if err != nil {
		return fmt.Errorf("events: consumer: %w", err)
	}
	var routing sync.WaitGroup
	defer routing.Wait()
	turns := make(chan struct{}, concurrency)
	consuming, err := c.Consume(func(m jetstream.Msg) {
		turns <- struct{}{}
		routing.Go(func() {
			defer func() { <-turns }()
			r.handle(ctx, m)
		})
	}, jetstream.PullMaxMessages(maxBatch), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { r.OnError(err) }))
	if err != nil {
		return fmt.Errorf("events: consume: %w", err)
	}
	select {
	case <-ctx.Done():
		consuming.Drain() // what has arrived goes back at once
		<-consuming.Closed()
		return ctx.Err()
	case <-consuming.Closed():
		return errors.New("events: the consumer is gone")
	}
}

// handle routes one event, and acknowledges it. After a failure it is delivered again: after retryDelay,
// or at once if this worker stops.
func (r *Router) handle(ctx context.Context, m jetstream.Msg) {
	err := ctx.Err()
	if err == nil {
		err = r.route(ctx, m)
	}
	switch {
	case err == nil:
		_ = m.Ack() // without it the event is delivered again
	case ctx.Err() != nil:
		_ = m.Nak()
	default:
		r.OnError(err)
		_ = m.NakWithDelay(retryDelay)
	}
}

// route ends all waits that an event matches, and starts the runs that it triggers.
func (r *Router) route(ctx context.Context, m jetstream.Msg) error {
	e, err := r.Store.decode(ctx, m.Subject(), m.Data())
	switch {
	case errors.Is(err, stream.ErrGone):
		return nil
	case errors.Is(err, errUndecodable):
		r.OnError(err)
		return nil
	case err != nil:
		return err
	}
	// The event is durable: a wait that the bucket does not have now compares itself with the event.
	if err := r.Waits.catchUp(ctx); err != nil {
		return err
	}
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if meta.NumDelivered > 1 {
		if err := r.resolveClaims(ctx, e); err != nil {
			return err
		}
	}
	matching, err := r.deliver(ctx, e, func(*Wait) bool { return true })
	if r.Trigger != nil {
		triggers, started, failed := r.Trigger(ctx, e, meta.Sequence.Stream)
		for range started {
			e.count(ctx, telemetry.EventTriggered)
		}
		matching, err = matching+triggers, errors.Join(err, failed)
	}
	if matching == 0 && err == nil && meta.NumDelivered == 1 { // a wait that an attempt has ended matches no more
		e.count(ctx, telemetry.EventUnmatched)
	}
	return err
}

// deliver ends the waits that an event matches and a filter accepts: one of each thread. It returns how
// many waits match.
func (r *Router) deliver(ctx context.Context, e *Event, filter func(*Wait) bool) (matching int, failed error) {
	waits := slices.DeleteFunc(r.Waits.matching(e), func(w *Wait) bool { return !filter(w) })
	for _, w := range waits {
		if _, err := r.end(ctx, e, w); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return len(waits), failed
}

// end ends a wait with an event. hasEnded is false if the thread has received the event for another
// wait, or another event or time has ended the wait: then the event is free for other waits of the
// thread.
func (r *Router) end(ctx context.Context, e *Event, w *Wait) (hasEnded bool, err error) {
	c, err := r.Store.claim(ctx, w, e)
	if err == nil && c.WaitID != w.ID && !c.Received {
		if err = r.resolveClaim(ctx, e, c); err == nil {
			c, err = r.Store.claim(ctx, w, e)
		}
	}
	if err != nil || c.WaitID != w.ID || c.Received {
		return err == nil && c.WaitID == w.ID, err
	}
	if hasEnded, err = r.decide(ctx, e, w, c); err != nil {
		return false, err
	}
	if hasEnded {
		e.count(ctx, telemetry.EventDelivered)
		return true, r.Store.confirm(ctx, c)
	}
	return false, r.releaseAndOffer(ctx, e, w, c)
}

// decide sends the decision of a claimed event to the thread of a wait, and reports whether the wait has
// ended with the event, now or in an earlier attempt.
func (r *Router) decide(ctx context.Context, e *Event, w *Wait, c *claim) (hasEnded bool, err error) {
	content, err := e.decision(w)
	if err != nil {
		return false, err
	}
	run := stream.Run{Thread: w.thread(), ID: w.RunRef}
	proposal, err := r.Store.log.ProposeDecision(ctx, run, e.decisionSum(w.CallID), content)
	if errors.Is(err, stream.ErrGone) { // the thread was deleted
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d := c.decision(e)
	d.Proposal = proposal.Seq
	result, isActive, err := r.Decide(ctx, run.Thread, d)
	if err != nil {
		return false, err
	}
	hasEnded = isActive && result.Error == "" // taken, or taken before
	if !hasEnded && !c.isNew {
		// An earlier attempt may have decided the wait, and the thread has continued.
		return r.IsDecided(ctx, run.Thread, d)
	}
	return hasEnded, nil
}

// releaseAndOffer releases the claim of a wait that has ended otherwise, and offers the event to the other waits of
// the thread: one that opened meanwhile has seen the claim.
func (r *Router) releaseAndOffer(ctx context.Context, e *Event, w *Wait, c *claim) error {
	if err := errors.Join(r.Store.release(ctx, c), r.Store.Unregister(ctx, w), r.Waits.catchUp(ctx)); err != nil {
		return err
	}
	_, err := r.deliver(ctx, e, func(other *Wait) bool {
		return other.Tenant == w.Tenant && other.ThreadID == w.ThreadID && other.ID != w.ID
	})
	return err
}

// resolveClaim confirms or releases the claim of an attempt that may have died, if its wait has ended. An open
// wait meets the event again. The log has no decision before the other waits of the turn have ended: until
// then only the workflow knows it.
func (r *Router) resolveClaim(ctx context.Context, e *Event, c *claim) error {
	if err := r.Waits.catchUp(ctx); err != nil {
		return err
	}
	w := c.wait(e.Tenant)
	if r.Waits.has(w.key()) {
		return nil
	}
	received, err := r.IsDecided(ctx, w.thread(), c.decision(e))
	if err == nil && !received {
		received, err = r.decide(ctx, e, w, c)
	}
	switch {
	case err != nil:
		return err
	case received:
		return r.Store.confirm(ctx, c)
	}
	return r.Store.release(ctx, c)
}

// resolveClaims resolves the claims on an event that is delivered again: an attempt has died, and IsDecided finds
// only decisions that the latest snapshot has.
func (r *Router) resolveClaims(ctx context.Context, e *Event) error {
	claims, err := r.Store.claimsOf(ctx, e)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if err := r.resolveClaim(ctx, e, c); err != nil {
			return err
		}
	}
	return nil
}
