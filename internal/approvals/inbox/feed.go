package inbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrBroken: the feed cannot go on. Whoever reads it comes back with the last cursor.
var ErrBroken = errors.New("inbox: the feed broke off")

const (
	feedHeartbeat = time.Second // two that stay out and the feed is broken
	feedBatch     = 100         // events on their way
	feedLife      = time.Minute // of a consumer that nobody asks
	feedPatience  = 5 * time.Second
)

// Feed reads the events of a tenant in their order, each once. It is used by one goroutine.
//
// It does not heal itself: a consumer lives on one node, and what was on its way when that died
// cannot be told. Then the feed is broken, and whoever reads it begins another one.
type Feed struct {
	store    *Store
	consumer string
	messages jetstream.MessagesContext
	read     uint64 // messages
}

// Message is an event of the feed: its cursor, its JSON, and what that says.
type Message struct {
	Cursor Cursor
	JSON   json.RawMessage
	Event  Event
}

// Follow begins a feed behind a cursor, or, with nil, with what happens from now on. Close must be
// called.
func (s *Store) Follow(ctx context.Context, tenant string, after *Cursor) (*Feed, error) {
	ctx, cancel := context.WithTimeout(ctx, feedPatience)
	defer cancel()
	f := &Feed{store: s, consumer: "feed_" + rand.Text()}
	cfg := jetstream.ConsumerConfig{
		Name: f.consumer, DeliverPolicy: jetstream.DeliverNewPolicy, FilterSubject: s.prefix + eventPrefix + token(tenant) + ".*",
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: feedLife, MemoryStorage: true, Replicas: 1,
	}
	if after != nil {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, after.revision+1
	}
	made, err := s.js.CreateConsumer(ctx, s.stream, cfg)
	if err != nil {
		return nil, asUnavailable(err)
	}
	f.messages, err = made.Messages(jetstream.PullHeartbeat(feedHeartbeat), jetstream.PullMaxMessages(feedBatch))
	if err != nil {
		f.deleteConsumer()
		return nil, asUnavailable(err)
	}
	return f, nil
}

// Next waits for the next event, for a while: nil = there was none. It fails with ErrBroken, or
// with ctx's error.
func (f *Feed) Next(ctx context.Context, wait time.Duration) (*Message, error) {
	for {
		m, err := f.next(ctx, wait)
		if err != nil || m == nil || m.Event.Type != "" {
			return m, err
		}
	}
}

// next reads one message; one that is no event has no type: another one has aged out.
func (f *Feed) next(ctx context.Context, wait time.Duration) (*Message, error) {
	patient, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	msg, err := f.messages.Next(jetstream.NextContext(patient))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if f.read++; meta.Sequence.Consumer != f.read {
		return nil, fmt.Errorf("%w: a message was lost", ErrBroken)
	}
	m := &Message{Cursor: Cursor{revision: meta.Sequence.Stream, at: meta.Timestamp, epoch: f.store.epoch}, JSON: msg.Data()}
	if len(m.JSON) > 0 {
		if err := json.Unmarshal(m.JSON, &m.Event); err != nil {
			return nil, fmt.Errorf("inbox: event: %w", err)
		}
	}
	return m, nil
}

// Close ends the feed.
func (f *Feed) Close() {
	f.messages.Stop()
	f.deleteConsumer()
}

// deleteConsumer has the consumer deleted. No answer is awaited: if nobody hears it the consumer
// ends by itself.
func (f *Feed) deleteConsumer() {
	if nc := f.store.log.Conn(); nc.IsConnected() {
		_ = nc.Publish("$JS.API.CONSUMER.DELETE."+f.store.stream+"."+f.consumer, nil)
	}
}
