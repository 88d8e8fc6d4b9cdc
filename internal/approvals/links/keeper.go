package links

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Keeper makes and verifies the tokens of links, and records which links were used. It is safe for
// concurrent use, and needs no closing.
type Keeper struct {
	key []byte
	kv  jetstream.KeyValue
}

// MinKey is the minimum length of a key, in bytes. A key that the Keeper generates has this length.
const MinKey = 32

// Keys of the bucket: the shared HMAC key, and used.<nonce> for each link that was used.
const (
	keyKey     = "key"
	usedPrefix = "used."
)

// markerTTL is how long the bucket keeps the delete marker of an expired key. Nothing reads these
// markers, but NATS requires the setting for keys with a TTL.
const markerTTL = time.Minute

// Open opens the bucket, and creates it if it is missing. If key is empty, Open uses the key in the
// bucket; the first API node generates it. A change of the key invalidates all links. Open blocks
// until the bucket answers or ctx ends.
func Open(ctx context.Context, l *stream.Log, key []byte) (*Keeper, error) {
	if len(key) > 0 && len(key) < MinKey {
		return nil, fmt.Errorf("links: a key must have at least %d bytes", MinKey)
	}
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "links", Description: "Perdure: the signing key of links, and the used links", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	})
	if err != nil {
		return nil, err
	}
	k := &Keeper{key: key, kv: kv}
	if len(key) == 0 {
		k.key, err = k.sharedKey(ctx)
	}
	return k, err
}

// pollInterval is the pause before the key is read again: the replica that answers may lag.
const pollInterval = 50 * time.Millisecond

// sharedKey returns the key in the bucket, and generates it if there is none. Of several nodes that
// generate a key concurrently, Create lets one win; the others read the winner's key.
func (k *Keeper) sharedKey(ctx context.Context) ([]byte, error) {
	newKey := make([]byte, MinKey)
	_, _ = rand.Read(newKey) // crypto/rand.Read never returns an error
	for {
		_, err := k.kv.Create(ctx, keyKey, newKey)
		if err == nil {
			return newKey, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, asUnavailable(err)
		}
		entry, err := k.kv.Get(ctx, keyKey)
		if err == nil {
			return entry.Value(), nil
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil, asUnavailable(err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("links: %w", context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// Use records that a link was used, until a minute after the link expires. Repeating it changes
// nothing.
func (k *Keeper) Use(ctx context.Context, l Link) error {
	ttl := max(time.Until(l.Expires), 0) + time.Minute
	_, err := k.kv.Create(ctx, usedPrefix+l.Nonce, nil, jetstream.KeyTTL(ttl.Truncate(time.Second)))
	if err == nil || errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return asUnavailable(err)
}

// Used reports whether a link was used.
func (k *Keeper) Used(ctx context.Context, l Link) (bool, error) {
	_, err := k.kv.Get(ctx, usedPrefix+l.Nonce)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, asUnavailable(err)
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable, so that the API answers 503.
// It returns nil, and the end of a cancelled request, unchanged.
func asUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("links: %w: %w", stream.ErrUnavailable, err)
}
