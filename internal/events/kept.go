package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// FindKept compares a registered wait with the events that have arrived before, and ends it with the
// first one that the thread has not received. It blocks until the wait is compared.
func (r *Router) FindKept(ctx context.Context, w *Wait) error {
	match, err := canonicalMatch(w.Match)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	found, err := r.kept(ctx, &openWait{w, match})
	if err != nil {
		return err
	}
	for _, seq := range found {
		// The wait may have ended meanwhile, and this attempt may be late.
		if err := r.Waits.catchUp(ctx); err != nil {
			return err
		}
		if !r.Waits.has(w.key()) {
			return nil
		}
		e, err := r.Store.Event(ctx, seq)
		if errors.Is(err, ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		if hasEnded, err := r.end(ctx, e, w); hasEnded || err != nil {
			return err
		}
	}
	return nil
}

// kept returns the sequences of the kept events that match a wait, in the order of their arrival.
func (r *Router) kept(ctx context.Context, w *openWait) ([]uint64, error) {
	for {
		s := r.scan(ctx, w)
		select {
		case <-s.done:
			// The caller that read may be gone: then it has told nothing about this wait.
			if !s.isAbandoned || ctx.Err() != nil {
				return s.matched[w.Wait], s.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// scan returns a scan that compares a wait. It joins one that has not begun to read, or reads itself.
func (r *Router) scan(ctx context.Context, w *openWait) *scan {
	name := eventName{w.Tenant, w.Event}
	r.mu.Lock()
	s, isFirst := r.scans[name], false
	if s == nil {
		s, isFirst = &scan{done: make(chan struct{}), matched: map[*Wait][]uint64{}}, true
		r.scans[name] = s
	}
	s.waits = append(s.waits, w)
	r.mu.Unlock()
	if isFirst { // it reads for those that join until the read begins
		r.read(ctx, name, s)
	}
	return s
}

// read waits for its turn, reads the events for a scan, and ends the scan. One scan reads at a time.
func (r *Router) read(ctx context.Context, name eventName, s *scan) {
	defer close(s.done)
	begin := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.scans, name)
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
		begin()
	case <-ctx.Done():
		begin()
		s.err, s.isAbandoned = context.Cause(ctx), true
		return
	}
	s.err = r.Store.read(ctx, name, func(e *Event, seq uint64) {
		data := decodeExact(e.Data)
		for _, w := range s.waits {
			if matches(w.match, data) {
				s.matched[w.Wait] = append(s.matched[w.Wait], seq)
			}
		}
	})
	s.isAbandoned = s.err != nil && ctx.Err() != nil
}

// read passes the kept events with a name, and their sequences, to take, in the order of their arrival: all
// that are durable at the call, and do not expire meanwhile.
func (s *Store) read(ctx context.Context, name eventName, take func(e *Event, seq uint64)) error {
	filter := typeSubject(s.prefix, name.tenant, name.name) + ".*"
	last, err := s.events.GetLastMsgForSubject(ctx, filter)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	c, err := s.js.OrderedConsumer(ctx, s.events.CachedInfo().Config.Name, jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return unavailable(err)
	}
	if info := c.CachedInfo(); info != nil && info.NumPending == 0 { // all have expired
		return nil
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(maxBatch))
	if err != nil {
		return unavailable(err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return unavailable(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("events: %w", err)
		}
		e, err := s.decode(ctx, m.Subject(), m.Data())
		switch {
		case err == nil:
			take(e, meta.Sequence.Stream)
		case !errors.Is(err, errUndecodable) && !errors.Is(err, stream.ErrGone):
			return err
		}
		if meta.Sequence.Stream >= last.Sequence || meta.NumPending == 0 { // the last one may have expired
			return nil
		}
	}
}
