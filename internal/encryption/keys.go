package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Errors of the configuration.
var (
	// ErrNoOperatorKey tells that the log has encrypted content, and that no key is configured.
	ErrNoOperatorKey = errors.New("the log is encrypted, and no encryption key is configured")
	// ErrUnusableOperatorKey tells that the key service does not encrypt and decrypt with the first
	// key. ErrUnknownOperatorKey tells that the configured keys do not include one that is in use.
	ErrUnusableOperatorKey = errors.New("the first encryption key cannot be used")
	ErrUnknownOperatorKey  = errors.New("the configured encryption keys lack one that is in use")
)

// Internal errors.
var (
	errMissing    = errors.New("encryption: the tenant has no key")
	errUnknownKey = errors.New("encryption: the keyset lacks the key")
)

// bucketName is the name of the bucket of keys; the log adds its own name as a prefix.
const bucketName = "keys"

// markerTTL is how long the bucket keeps the marker of a destroyed key. A process that is not
// connected meanwhile forgets all keys when it connects again.
const markerTTL = time.Minute

// Bounds of the keys in memory.
const (
	cachedThreads = 4096
	cachedTenants = 1024
)

// Keys has the keys of threads and tenants. It implements stream.Cipher, and is safe for concurrent
// use. It owns a goroutine that ends with the connection of the log.
type Keys struct {
	log       *stream.Log
	bucket    jetstream.KeyValue
	backing   jetstream.Stream // of the bucket
	operators []bound          // the first one encrypts

	threads *lru.Cache[string, *keys] // by the thread's name
	tenants *lru.Cache[string, *keys] // by the tenant's token
	// destroyed counts the keys of threads that were removed from memory because they may have been
	// destroyed.
	destroyed atomic.Uint64
}

// Cipher returns an opener of Keys for stream.Options. The first of the operator's keys encrypts, all
// of them decrypt.
func Cipher(operators []OperatorKey) func(context.Context, *stream.Log) (stream.Cipher, error) {
	return func(ctx context.Context, l *stream.Log) (stream.Cipher, error) { return Open(ctx, l, operators) }
}

// Open opens the bucket of keys, and creates it if it is missing. It checks that the first of the
// operator's keys can be used. Errors: ErrUnusableOperatorKey, ErrUnknownOperatorKey.
func Open(ctx context.Context, l *stream.Log, operators []OperatorKey) (*Keys, error) {
	k := &Keys{log: l}
	for _, o := range operators {
		k.operators = append(k.operators, bound{o})
	}
	if err := k.operators[0].check(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusableOperatorKey, err)
	}
	k.threads, _ = lru.New[string, *keys](cachedThreads) // fails only for a size below 1
	k.tenants, _ = lru.New[string, *keys](cachedTenants)
	var err error
	if k.bucket, err = l.ErasableBucket(ctx, bucketName, "Perdure: keys of tenants and threads"); err != nil {
		return nil, err
	}
	js, err := jetstream.New(l.Conn())
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	if k.backing, err = js.Stream(ctx, "KV_"+k.bucket.Bucket()); err != nil {
		return nil, asUnavailable(err)
	}
	if err := k.checkTenantKeys(ctx); err != nil {
		return nil, err
	}
	return k, k.watch()
}

// CheckPlain checks that a log without operator's keys has no encrypted content. Errors:
// ErrNoOperatorKey.
func CheckPlain(ctx context.Context, l *stream.Log) error {
	has, err := l.HasEntries(ctx, bucketName)
	if err == nil && has {
		err = ErrNoOperatorKey
	}
	return err
}

// watch follows the changes of the bucket, and forgets the keys that were changed. It ends with the
// connection.
func (k *Keys) watch() error {
	nc := k.log.Conn()
	states := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	ctx, cancel := context.WithCancel(context.Background()) // nats.go waits for its end
	watcher, err := k.bucket.Watch(ctx, ">", jetstream.UpdatesOnly(), jetstream.MetaOnly())
	if err != nil {
		cancel()
		nc.RemoveStatusListener(states)
		return asUnavailable(err)
	}
	go func() {
		defer cancel()
		defer nc.RemoveStatusListener(states)
		defer func() { _ = watcher.Stop() }()
		for {
			select {
			case change, ok := <-watcher.Updates():
				if !ok {
					return
				}
				if change != nil {
					k.applyChange(change)
				}
			case state := <-states:
				if state == nats.CLOSED {
					return
				}
				k.forgetAll() // changes may have been missed
			}
		}
	}()
	return nil
}

// applyChange forgets a key that was changed.
func (k *Keys) applyChange(change jetstream.KeyValueEntry) {
	if tenant, ok := strings.CutPrefix(change.Key(), tenantPrefix); ok {
		forgetOlder(k.tenants, tenant, change.Revision())
		return
	}
	thread, ok := strings.CutPrefix(change.Key(), threadPrefix)
	switch {
	case !ok:
	case change.Operation() == jetstream.KeyValuePut:
		forgetOlder(k.threads, thread, change.Revision())
	default:
		k.forget(thread)
	}
}

// forgetOlder removes keys from memory that are older than a revision.
func forgetOlder(cache *lru.Cache[string, *keys], name string, revision uint64) {
	if cached, ok := cache.Peek(name); ok && cached.revision < revision {
		cache.Remove(name)
	}
}

// forget removes the destroyed keys of a thread from memory.
func (k *Keys) forget(thread string) {
	k.destroyed.Add(1) // before the removal: see fetchThreadKey
	k.threads.Remove(thread)
}

// forgetAll removes all keys from memory.
func (k *Keys) forgetAll() {
	k.destroyed.Add(1)
	k.threads.Purge()
	k.tenants.Purge()
}

// erase overwrites and removes the message with a revision; it succeeds if there is none.
func (k *Keys) erase(ctx context.Context, revision uint64) error {
	err := k.backing.SecureDeleteMsg(ctx, revision)
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return asUnavailable(err)
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable. It returns nil, and the end of
// a cancelled request, unchanged.
func asUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("encryption: %w: %w", stream.ErrUnavailable, err)
}
