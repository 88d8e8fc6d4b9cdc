package inbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// ErrBroken: the feed has lost its consumer or a message. The reader follows again with its last
// cursor.
var ErrBroken = errors.New("inbox: the feed was interrupted")

const (
	feedHeartbeat = time.Second // of the server; the feed breaks after two missed ones (nats.go, PullHeartbeat)
	feedBatch     = 100         // messages that the client requests in advance
	feedTTL       = time.Minute // after which the server deletes an unused consumer
	feedTimeout   = 5 * time.Second
)

// Feed reads the events of a tenant in their order, each once. Only one goroutine may use it; Close
// must be called.
//
// A feed does not repair itself. Its consumer lives in the memory of one NATS node; after the death
// of that node, nobody knows which messages were in flight. The feed then fails with ErrBroken, and
// the reader begins another one.
type Feed struct {
	store    *Store
	consumer string
	messages jetstream.MessagesContext
	// read is the number of messages read, which equals the last message's consumer sequence unless
	// a message was lost.
	read uint64
}

// Message is an event of the feed with its cursor: as JSON for clients, and decoded for filters.
type Message struct {
	Cursor Cursor
	JSON   json.RawMessage
	Event  Event
}

// Follow begins a feed after a cursor; nil = with the events from now on. It waits up to
// feedTimeout for the server. The caller must call Close.
func (s *Store) Follow(ctx context.Context, tenant string, after *Cursor) (*Feed, error) {
	ctx, cancel := context.WithTimeout(ctx, feedTimeout)
	defer cancel()
	f := &Feed{store: s, consumer: "feed_" + rand.Text()}
	cfg := jetstream.ConsumerConfig{
		Name: f.consumer, DeliverPolicy: jetstream.DeliverNewPolicy, FilterSubject: s.prefix + eventPrefix + stream.KeyToken(tenant) + ".*",
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: feedTTL, MemoryStorage: true, Replicas: 1,
	}
	if after != nil {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, after.revision+1
	}
	created, err := s.js.CreateConsumer(ctx, s.stream, cfg)
	if err != nil {
		return nil, asUnavailable(err)
	}
	f.messages, err = created.Messages(jetstream.PullHeartbeat(feedHeartbeat), jetstream.PullMaxMessages(feedBatch))
	if err != nil {
		f.deleteConsumer()
		return nil, asUnavailable(err)
	}
	return f, nil
}

// Next returns the next event. It returns nil without an error if there is none for the duration
// wait. Errors: ErrBroken, or the cause of ctx's end.
func (f *Feed) Next(ctx context.Context, wait time.Duration) (*Message, error) {
	for {
		m, err := f.next(ctx, wait)
		if err != nil || m == nil || m.Event.Type != "" {
			return m, err
		}
	}
}

// next reads one message. If an event has expired, its delete marker is a message whose Event.Type
// is empty, and so is that of an event whose thread was deleted.
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
	if len(m.JSON) == 0 {
		return m, nil
	}
	key := strings.TrimPrefix(msg.Subject(), f.store.prefix)
	m.JSON, err = f.store.log.DecryptEntry(ctx, key, m.JSON)
	if errors.Is(err, stream.ErrGone) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(m.JSON, &m.Event)
	}
	if err != nil {
		return nil, fmt.Errorf("inbox: event: %w", err)
	}
	return m, nil
}

// Close ends the feed. It does not wait for the server.
func (f *Feed) Close() {
	f.messages.Stop()
	f.deleteConsumer()
}

// deleteConsumer requests that the server deletes the consumer, and does not wait for the answer:
// the server deletes an unused consumer after feedTTL.
func (f *Feed) deleteConsumer() {
	if nc := f.store.log.Conn(); nc.IsConnected() {
		_ = nc.Publish("$JS.API.CONSUMER.DELETE."+f.store.stream+"."+f.consumer, nil)
	}
}
