package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Prefixes of the keys of the bucket.
const (
	tokenPrefix   = "token."
	sessionPrefix = "session."
	logoutPrefix  = "logout."
)

// markerTTL is how long the bucket keeps the delete marker of a key. A watch that was interrupted
// for longer loads all keys again.
const markerTTL = time.Minute

// owner is the thread whose key encrypts the values of the bucket. It belongs to no tenant, so no
// client can delete it, and has no records. The commands that rotate keys of threads include its key.
var owner = stream.Thread{ID: "sessions"}

// keyTimeout bounds how long a request waits for the keys during an outage.
const keyTimeout = 5 * time.Second

// errConflict tells that a key has changed since it was read.
var errConflict = errors.New("sessions: the record has changed")

// bucket is the key-value bucket of sessions. Every key has a time to live. If the log has a cipher,
// the bucket encrypts values. Its errors are auth.ErrUnavailable, except errConflict. It is safe for
// concurrent use.
type bucket struct {
	log *stream.Log
	kv  jetstream.KeyValue
	js  jetstream.JetStream
}

// openBucket opens the bucket, and creates it if it is missing.
func openBucket(ctx context.Context, l *stream.Log) (*bucket, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "sessions", Description: "Perdure: sessions of browsers", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(l.Conn())
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return &bucket{log: l, kv: kv, js: js}, nil
}

// read returns the value of a key and its revision; nil = the key has none. A replica answers, whose
// value may be milliseconds old. If the replica has none, the leader answers.
func (b *bucket) read(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	entry, err := b.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return b.readLeader(ctx, key)
	}
	if err != nil {
		return nil, 0, unavailable(err)
	}
	value, err = b.decryptWithin(ctx, key, entry.Value())
	return value, entry.Revision(), err
}

// readLeader is read, but the leader answers with the newest value.
func (b *bucket) readLeader(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	stored, revision, err := b.log.LastValue(ctx, b.kv, key)
	if err != nil || stored == nil {
		return nil, revision, unavailable(err)
	}
	value, err = b.decryptWithin(ctx, key, stored)
	return value, revision, err
}

// decrypt returns the value of a key from what is stored; nil = the value cannot be decrypted, because
// it was changed or its key is lost. It waits for the keys until ctx ends.
func (b *bucket) decrypt(ctx context.Context, key string, stored []byte) ([]byte, error) {
	value, err := b.log.DecryptEntry(ctx, key, stored)
	if err != nil && (ctx.Err() != nil || errors.Is(err, stream.ErrUnavailable)) {
		return nil, unavailable(err)
	}
	return value, nil
}

// decryptWithin is decrypt, but it waits for the keys for keyTimeout at most.
func (b *bucket) decryptWithin(ctx context.Context, key string, stored []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	return b.decrypt(ctx, key, stored)
}

// write writes the value of a key until a time, if the key has the given revision; 0 = the key must
// not exist. It returns the new revision. Errors: errConflict.
func (b *bucket) write(ctx context.Context, key string, value []byte, until time.Time, revision uint64) (uint64, error) {
	return b.publish(ctx, key, value, until, jetstream.WithExpectLastSequencePerSubject(revision))
}

// replace writes the value of a key until a time, whatever value it has.
func (b *bucket) replace(ctx context.Context, key string, value []byte, until time.Time) error {
	_, err := b.publish(ctx, key, value, until)
	return err
}

// publish writes a value. KeyValue cannot do it: it supports a TTL only where it creates a key.
func (b *bucket) publish(ctx context.Context, key string, value []byte, until time.Time, options ...jetstream.PublishOpt) (uint64, error) {
	encrypting, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	stored, err := b.log.EncryptEntry(encrypting, owner, key, value)
	if err != nil {
		return 0, unavailable(err)
	}
	// NATS counts a TTL in whole seconds, at least one.
	ttl := max(time.Until(until).Round(time.Second), time.Second)
	ack, err := b.js.Publish(ctx, "$KV."+b.kv.Bucket()+"."+key, stored, append(options, jetstream.WithMsgTTL(ttl))...)
	if stream.IsConflict(err) {
		return 0, errConflict
	}
	if err != nil {
		return 0, unavailable(err)
	}
	return ack.Sequence, nil
}

// remove deletes a key.
func (b *bucket) remove(ctx context.Context, key string) error {
	return unavailable(b.kv.Purge(ctx, key, jetstream.PurgeTTL(markerTTL)))
}

// unavailable marks an error as auth.ErrUnavailable; nil stays nil.
func unavailable(err error) error {
	if err == nil || errors.Is(err, auth.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: sessions: %w", auth.ErrUnavailable, err)
}
