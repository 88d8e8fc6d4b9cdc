package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/stream"
)

// bucket is the name of the key-value bucket; the log adds its own name as a prefix.
const bucket = "approvals"

// EventTTL is how long the bucket keeps an event, and the marker that an interrupt is settled. A
// notification that is later than that could reopen the interrupt in the inbox.
const EventTTL = 7 * 24 * time.Hour

// markerTTL is how long the bucket keeps the delete marker of an expired key. Nothing reads these
// markers, but NATS requires the setting for keys with a TTL.
const markerTTL = time.Minute

// Prefixes of keys; the third is decidedPrefix.
const (
	pendingPrefix = "pending."
	eventPrefix   = "event."
)

// Store reads and writes the bucket. Workers write with it; API nodes read with its Index and Feed.
// It is safe for concurrent use, and needs no closing: the log owns the connection.
type Store struct {
	log *stream.Log
	js  jetstream.JetStream
	kv  jetstream.KeyValue
	// backing is the stream of the bucket, stream its name. Unlike jetstream.KeyValue, it returns
	// delete markers with their revisions.
	backing jetstream.Stream
	stream  string
	prefix  string // begins the subjects of keys: "$KV.<bucket>."
	// epoch identifies this instance of the bucket, by its time of creation.
	epoch string
}

// Open opens the bucket, and creates it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Store, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: open and decided approvals", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(l.Conn())
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("inbox: %w: %w", stream.ErrUnavailable, err)
	}
	// A bucket that was deleted and created again counts its revisions from 1. Cursors contain the
	// epoch, so that cursors of the old bucket are refused.
	bucketStatus, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return nil, fmt.Errorf("inbox: the bucket has the status %T", status)
	}
	name := "KV_" + kv.Bucket()
	backing, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("inbox: %w: %w", stream.ErrUnavailable, err)
	}
	epoch := strconv.FormatInt(bucketStatus.StreamInfo().Created.UnixMilli(), 36)
	return &Store{log: l, js: js, kv: kv, backing: backing, stream: name, prefix: "$KV." + kv.Bucket() + ".", epoch: epoch}, nil
}

// timeDigits is the width of the time in a key: milliseconds since 1970 in hexadecimal, with
// leading zeros, so that keys sort by time until the year 10889.
const timeDigits = 12

// sortKeyOf returns the sort key of an interrupt among those of its tenant: <time>.<approval>. Sort
// keys sort by time.
func sortKeyOf(requestedAt time.Time, id string) string {
	return fmt.Sprintf("%0*x.%s", timeDigits, requestedAt.UnixMilli(), id)
}

// pendingKey returns the key of an open interrupt.
func pendingKey(tenant string, a *Approval) string {
	return pendingPrefix + stream.KeyToken(tenant) + "." + sortKeyOf(a.RequestedAt, a.ID)
}

// pending is the value of a pending key.
type pending struct {
	// At is when the event happened that the value is about.
	At       time.Time       `json:"at"`
	Approval json.RawMessage `json:"approval"`
}

// Put writes an open interrupt as of a time. It changes nothing if the interrupt is settled, or if
// the bucket has it as of a later time: then this notification is late. It repeats its
// compare-and-swap until it succeeds or ctx ends.
func (s *Store) Put(ctx context.Context, tenant string, a *Approval, at time.Time) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	value, err := json.Marshal(pending{At: at, Approval: raw})
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	key := pendingKey(tenant, a)
	if value, err = s.log.EncryptEntry(ctx, stream.Thread{Tenant: tenant, ID: a.ThreadID}, key, value); err != nil {
		return err
	}
	for {
		revision, newer, err := s.lookUpEntry(ctx, key, at)
		if err != nil || newer {
			return err
		}
		msg := &nats.Msg{Subject: s.prefix + key, Data: value}
		_, err = s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(revision))
		if !stream.IsConflict(err) {
			return asUnavailable(err)
		}
		if err := durations.Sleep(ctx, conflictPause); err != nil {
			return err
		}
	}
}

// conflictPause is the pause after a conflict, before the key is read again: the replica that
// answers may lag.
const conflictPause = 20 * time.Millisecond

// lookUpEntry reads a pending key: its revision (0 = no entry), and whether the entry is newer than
// at. A settled entry counts as newer.
func (s *Store) lookUpEntry(ctx context.Context, key string, at time.Time) (revision uint64, newer bool, err error) {
	msg, err := s.backing.GetLastMsgForSubject(ctx, s.prefix+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, asUnavailable(err)
	}
	var stored pending
	if msg.Header.Get("KV-Operation") == "" { // a value; DEL and PURGE mean that the interrupt is settled
		value, err := s.log.DecryptEntry(ctx, key, msg.Data)
		if err == nil {
			err = json.Unmarshal(value, &stored)
		}
		return msg.Sequence, at.Before(stored.At), err
	}
	return msg.Sequence, true, nil
}

// Settle removes an interrupt from the pending ones. For a week (Kept), no late notification can
// bring it back.
func (s *Store) Settle(ctx context.Context, tenant string, a *Approval) error {
	return s.purgePending(ctx, pendingKey(tenant, a))
}

// purgePending purges a pending key, and leaves a marker with a TTL.
func (s *Store) purgePending(ctx context.Context, key string) error {
	return asUnavailable(s.kv.Purge(ctx, key, jetstream.PurgeTTL(EventTTL)))
}

// Record writes an event for followers. Events with the same id are written once; id consists of
// letters, digits, "-" and "_".
func (s *Store) Record(ctx context.Context, tenant, id string, e *Event) error {
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	key := eventPrefix + stream.KeyToken(tenant) + "." + id
	if value, err = s.log.EncryptEntry(ctx, stream.Thread{Tenant: tenant, ID: e.Approval.ThreadID}, key, value); err != nil {
		return err
	}
	_, err = s.kv.Create(ctx, key, value, jetstream.KeyTTL(EventTTL))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return asUnavailable(err)
}

// ErrUnknownEvent: the bucket does not have the event; it may have expired.
var ErrUnknownEvent = errors.New("inbox: unknown event")

// Event returns an event by its id. Errors: ErrUnknownEvent.
func (s *Store) Event(ctx context.Context, tenant, id string) (*Event, error) {
	key := eventPrefix + stream.KeyToken(tenant) + "." + id
	entry, err := s.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrUnknownEvent
	}
	if err != nil {
		return nil, asUnavailable(err)
	}
	value, err := s.log.DecryptEntry(ctx, key, entry.Value())
	if errors.Is(err, stream.ErrGone) {
		return nil, ErrUnknownEvent
	}
	if err != nil {
		return nil, err
	}
	e := new(Event)
	if err := json.Unmarshal(value, e); err != nil {
		return nil, fmt.Errorf("inbox: event %s: %w", id, err)
	}
	return e, nil
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable. It returns nil, and the end
// of a cancelled request, unchanged.
func asUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("inbox: %w: %w", stream.ErrUnavailable, err)
}
