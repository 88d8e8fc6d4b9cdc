package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/stream"
)

// Retention is how long an event is kept: for runs that wait for it later, and to recognize
// repetitions.
const Retention = 72 * time.Hour

// markerTTL is how long the bucket keeps the marker of a deleted key.
const markerTTL = time.Minute

// Store keeps the events of all tenants and the open waits. It is safe for concurrent use, and needs
// no closing: the log owns the connection.
type Store struct {
	log    *stream.Log
	js     jetstream.JetStream
	events jetstream.Stream
	// prefix begins the subjects of events.
	prefix string
	waits  jetstream.KeyValue
}

// Open opens the stream of events and the bucket of waits, and creates them if they are missing.
func Open(ctx context.Context, l *stream.Log) (*Store, error) {
	js, err := jetstream.New(l.Conn())
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	s := &Store{log: l, js: js}
	s.events, s.prefix, err = l.OwnStream(ctx, jetstream.StreamConfig{
		Name: "events", Description: "Perdure: CloudEvents from other systems", Storage: jetstream.FileStorage,
		MaxAge: Retention, MaxMsgSize: 2 * MaxEvent,
	})
	if err != nil {
		return nil, err
	}
	s.waits, err = l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "waits", Description: "Perdure: runs that wait for a time or an event", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	})
	return s, err
}

// Append stores an event, and sets ReceivedAt. isNew is false if the tenant has an event with the same
// source and ID. Errors: stream.ErrUnavailable.
func (s *Store) Append(ctx context.Context, e *Event) (isNew bool, err error) {
	e.ReceivedAt = time.Now().UTC()
	value, err := Encode(e)
	if err != nil {
		return false, fmt.Errorf("events: encode event: %w", err)
	}
	subject := e.subject(s.prefix)
	if value, err = s.log.EncryptEntry(ctx, keyThread(e.Tenant), subject, value); err != nil {
		return false, err
	}
	_, err = s.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: value}, jetstream.WithExpectLastSequencePerSubject(0))
	if stream.IsConflict(err) {
		e.count(ctx, telemetry.EventDuplicate)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("events: append: %w: %w", stream.ErrUnavailable, err)
	}
	e.count(ctx, telemetry.EventReceived)
	return true, nil
}

// errUndecodable tells that a message of the stream is no event. Another attempt changes nothing.
var errUndecodable = errors.New("events: a stored event cannot be decoded")

// decode decodes a message of the stream. Errors: errUndecodable.
func (s *Store) decode(ctx context.Context, subject string, value []byte) (*Event, error) {
	plain, err := s.log.DecryptEntry(ctx, subject, value)
	if err != nil {
		return nil, err
	}
	e := &Event{}
	if err := json.Unmarshal(plain, e); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	return e, nil
}

// ErrUnknown tells that an event is not kept any more.
var ErrUnknown = errors.New("events: unknown event")

// Event returns an event by its sequence. Errors: ErrUnknown, also for a message that is no event;
// stream.ErrUnavailable.
func (s *Store) Event(ctx context.Context, seq uint64) (*Event, error) {
	m, err := s.events.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, unavailable(err)
	}
	e, err := s.decode(ctx, m.Subject, m.Data)
	if errors.Is(err, stream.ErrGone) || errors.Is(err, errUndecodable) {
		return nil, ErrUnknown
	}
	return e, err
}

// Register writes an open wait. It changes nothing if the wait was registered before, also if it has
// ended since: then this attempt is late.
func (s *Store) Register(ctx context.Context, w *Wait) error {
	value, err := json.Marshal(storedWait{w.Tenant, w})
	if err != nil {
		return fmt.Errorf("events: encode wait: %w", err)
	}
	if value, err = s.log.EncryptEntry(ctx, w.thread(), w.key(), value); err != nil {
		return err
	}
	_, err = s.js.PublishMsg(ctx, &nats.Msg{Subject: "$KV." + s.waits.Bucket() + "." + w.key(), Data: value}, jetstream.WithExpectLastSequencePerSubject(0))
	if stream.IsConflict(err) {
		return nil
	}
	return unavailable(err)
}

// Unregister removes a wait that has ended. Its marker stays for endedTTL, longer than any attempt of
// Register that was in flight.
func (s *Store) Unregister(ctx context.Context, w *Wait) error {
	return unavailable(s.waits.Purge(ctx, w.key(), jetstream.PurgeTTL(endedTTL)))
}

// endedTTL is how long the bucket keeps the marker of a wait that has ended.
const endedTTL = 24 * time.Hour

// Purge removes the waits and claims of a thread that is deleted.
func (s *Store) Purge(ctx context.Context, t stream.Thread) error {
	for _, prefix := range []string{waitPrefix, claimPrefix} {
		keys, err := stream.Keys(ctx, s.waits, threadKey(prefix, t)+".>")
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := s.waits.Purge(ctx, key, jetstream.PurgeTTL(markerTTL)); err != nil {
				return unavailable(err)
			}
		}
	}
	return nil
}

// unavailable wraps an error of the bucket in stream.ErrUnavailable.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("events: %w: %w", stream.ErrUnavailable, err)
}
