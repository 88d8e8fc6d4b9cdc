package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// bucket holds what is pending, and events.
const bucket = "approvals"

// Kept is how long events are kept, and for how long it is remembered that an approval is settled.
const Kept = 7 * 24 * time.Hour

// markerLife is how long the bucket says that an event has aged out; nobody needs to know.
const markerLife = time.Minute

// Prefixes of keys.
const (
	pendingPrefix = "pending."
	eventPrefix   = "event."
)

// Store is the bucket. It is safe for concurrent use.
type Store struct {
	log    *stream.Log
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	behind jetstream.Stream // that the bucket is
	stream string           // its name
	prefix string           // of the subjects that keys are
	epoch  string
}

// Open opens the bucket, creating it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Store, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: approvals that wait, and what happened to them", Storage: jetstream.FileStorage, LimitMarkerTTL: markerLife,
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
	// A bucket that was lost and made anew counts from 1 again: cursors tell the one from the
	// other.
	made, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return nil, fmt.Errorf("inbox: the bucket has the status %T", status)
	}
	name := "KV_" + kv.Bucket()
	behind, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("inbox: %w: %w", stream.ErrUnavailable, err)
	}
	epoch := strconv.FormatInt(made.StreamInfo().Created.UnixMilli(), 36)
	return &Store{log: l, js: js, kv: kv, behind: behind, stream: name, prefix: "$KV." + kv.Bucket() + ".", epoch: epoch}, nil
}

// token returns a tenant as a key may have it: distinct ones are distinct, as in subjects.
func token(tenant string) string { return strings.Replace(stream.Token(tenant), "~", "=", 1) }

// placeDigits is the width of the time in a key, in milliseconds and hexadecimal: until the year
// 10889.
const placeDigits = 12

// placeOf returns an approval's place among those of its tenant, and its id.
func placeOf(requestedAt time.Time, id string) string {
	return fmt.Sprintf("%0*x.%s", placeDigits, requestedAt.UnixMilli(), id)
}

func pendingKey(tenant string, a *Approval) string {
	return pendingPrefix + token(tenant) + "." + placeOf(a.RequestedAt, a.ID)
}

// pending is the value of a pending key.
type pending struct {
	At       time.Time       `json:"at"` // of what changed it last
	Approval json.RawMessage `json:"approval"`
}

// Put writes an approval that waits, as it is at a time. It changes nothing if the approval is
// settled, or is known as it was later: it is told late.
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
	for {
		revision, newer, err := s.lookUpEntry(ctx, key, at)
		if err != nil || newer {
			return err
		}
		msg := &nats.Msg{Subject: s.prefix + key, Data: value}
		_, err = s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(revision))
		if !isConflict(err) {
			return asUnavailable(err)
		}
		if err := sleep(ctx, look); err != nil {
			return err
		}
	}
}

// isConflict reports whether somebody was faster.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// look is the pause between two looks: a replica that was asked may be behind.
const look = 20 * time.Millisecond

// lookUpEntry looks up what is known of a key: its revision, 0 = nothing, and whether it is settled
// or newer than a time.
func (s *Store) lookUpEntry(ctx context.Context, key string, at time.Time) (revision uint64, newer bool, err error) {
	msg, err := s.behind.GetLastMsgForSubject(ctx, s.prefix+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, asUnavailable(err)
	}
	var was pending
	if msg.Header.Get("KV-Operation") == "" { // it is not settled
		err = json.Unmarshal(msg.Data, &was)
		return msg.Sequence, at.Before(was.At), err
	}
	return msg.Sequence, true, nil
}

// Settle takes an approval out of what is pending, for good.
func (s *Store) Settle(ctx context.Context, tenant string, a *Approval) error {
	return s.settle(ctx, pendingKey(tenant, a))
}

func (s *Store) settle(ctx context.Context, key string) error {
	return asUnavailable(s.kv.Purge(ctx, key, jetstream.PurgeTTL(Kept)))
}

// Record keeps an event for those who follow, once for each id, which has letters, digits, "-" and
// "_".
func (s *Store) Record(ctx context.Context, tenant, id string, e *Event) error {
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	_, err = s.kv.Create(ctx, eventPrefix+token(tenant)+"."+id, value, jetstream.KeyTTL(Kept))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return asUnavailable(err)
}

// ErrUnknownEvent: there is no such event, or it is too old.
var ErrUnknownEvent = errors.New("inbox: unknown event")

// Event returns an event by its id.
func (s *Store) Event(ctx context.Context, tenant, id string) (*Event, error) {
	entry, err := s.kv.Get(ctx, eventPrefix+token(tenant)+"."+id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrUnknownEvent
	}
	if err != nil {
		return nil, asUnavailable(err)
	}
	e := new(Event)
	if err := json.Unmarshal(entry.Value(), e); err != nil {
		return nil, fmt.Errorf("inbox: event %s: %w", id, err)
	}
	return e, nil
}

// asUnavailable marks a failure to reach the bucket.
func asUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("inbox: %w: %w", stream.ErrUnavailable, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
