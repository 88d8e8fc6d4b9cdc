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

// Keeper makes and reads links. It is safe for concurrent use.
type Keeper struct {
	key []byte
	kv  jetstream.KeyValue
}

// MinKey is the least length of a key, in bytes.
const MinKey = 32

// Keys of the bucket.
const (
	keyKey     = "key"
	usedPrefix = "used."
)

// markerLife is how long the bucket says that it has forgotten a link; nobody needs to know.
const markerLife = time.Minute

// Open opens the bucket. Without a key it uses the one in the bucket, which the first who comes
// puts there. With another key than before, all links are invalid.
func Open(ctx context.Context, l *stream.Log, key []byte) (*Keeper, error) {
	if len(key) > 0 && len(key) < MinKey {
		return nil, fmt.Errorf("links: a key must have at least %d bytes", MinKey)
	}
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "links", Description: "Perdure: the key of links, and those that were used", Storage: jetstream.FileStorage, LimitMarkerTTL: markerLife,
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

// look is the pause between two looks: a replica that is asked may be behind.
const look = 50 * time.Millisecond

// sharedKey finds the bucket's key, or makes it.
func (k *Keeper) sharedKey(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, MinKey)
	_, _ = rand.Read(fresh) // never fails
	for {
		_, err := k.kv.Create(ctx, keyKey, fresh)
		if err == nil {
			return fresh, nil
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
		case <-time.After(look):
		}
	}
}

// Use notes that a link was used, for as long as it would be good. Again changes nothing.
func (k *Keeper) Use(ctx context.Context, l Link) error {
	life := max(time.Until(l.Expires), 0) + time.Minute
	_, err := k.kv.Create(ctx, usedPrefix+l.Nonce, nil, jetstream.KeyTTL(life.Truncate(time.Second)))
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

// asUnavailable marks a failure to reach the bucket.
func asUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("links: %w: %w", stream.ErrUnavailable, err)
}
