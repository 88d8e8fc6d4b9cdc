package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// threadPrefix begins the keys of threads in the bucket; the tokens of tenant and thread follow.
const threadPrefix = "thread."

// tenantOf returns the tenant's token in the name of a thread.
func tenantOf(thread string) string {
	tenant, _, _ := strings.Cut(thread, ".")
	return tenant
}

// Begin implements stream.Cipher. It writes first, and reads only if the thread has a key already:
// for a new thread it costs one request.
func (k *Keys) Begin(ctx context.Context, thread string) error {
	_, err := k.create(ctx, thread)
	return err
}

// create creates the keys of a thread, or returns the existing ones.
func (k *Keys) create(ctx context.Context, thread string) (*keys, error) {
	for range maxConflicts {
		created, err := newKeys()
		if err != nil {
			return nil, err
		}
		tenant, err := k.tenantKey(ctx, tenantOf(thread), true)
		if err != nil {
			return nil, err
		}
		value, err := created.encode(ctx, tenant, threadPrefix+thread)
		if err != nil {
			return nil, err
		}
		created.revision, err = k.bucket.Create(ctx, threadPrefix+thread, value)
		switch {
		case err == nil:
			k.threads.Add(thread, created)
			return created, nil
		case !errors.Is(err, jetstream.ErrKeyExists):
			return nil, asUnavailable(err)
		}
		existing, err := k.fetchThreadKey(ctx, thread)
		if !errors.Is(err, stream.ErrKeyDestroyed) {
			return existing, err
		}
	}
	return nil, fmt.Errorf("encryption: %w: the key of %s is created and destroyed all the time", stream.ErrUnavailable, thread)
}

// threadKey returns the keys of a thread. Errors: stream.ErrKeyDestroyed.
func (k *Keys) threadKey(ctx context.Context, thread string) (*keys, error) {
	if cached, ok := k.threads.Get(thread); ok {
		return cached, nil
	}
	return k.fetchThreadKey(ctx, thread)
}

// fetchThreadKey reads the keys of a thread from the bucket into memory. Errors:
// stream.ErrKeyDestroyed.
func (k *Keys) fetchThreadKey(ctx context.Context, thread string) (*keys, error) {
	destroyed := k.destroyed.Load()
	value, revision, err := k.log.LastValue(ctx, k.bucket, threadPrefix+thread)
	if err != nil {
		return nil, err
	}
	if value == nil {
		k.threads.Remove(thread)
		return nil, stream.ErrKeyDestroyed
	}
	fetched, err := k.decodeThreadKey(ctx, thread, value, revision)
	if err != nil {
		return nil, err
	}
	// A key that was destroyed meanwhile may be this one: it must not stay in memory.
	if k.threads.Add(thread, fetched); k.destroyed.Load() != destroyed {
		k.threads.Remove(thread)
	}
	return fetched, nil
}

// decodeThreadKey decrypts the keys of a thread with those of its tenant. If the tenant's key was
// rotated, it reads that one again.
func (k *Keys) decodeThreadKey(ctx context.Context, thread string, value []byte, revision uint64) (*keys, error) {
	tenant, err := k.tenantKey(ctx, tenantOf(thread), false)
	if err != nil {
		return nil, err
	}
	decoded, err := decodeKeys(ctx, value, tenant, threadPrefix+thread, revision)
	if !errors.Is(err, errUnknownKey) {
		return decoded, err
	}
	if tenant, err = k.fetchTenantKey(ctx, tenantOf(thread)); err != nil {
		return nil, err
	}
	return decodeKeys(ctx, value, tenant, threadPrefix+thread, revision)
}

// Encrypt implements stream.Cipher. Tink generates a random nonce for each ciphertext.
func (k *Keys) Encrypt(ctx context.Context, thread string, plain, place []byte) ([]byte, error) {
	threadKeys, err := k.threadKey(ctx, thread)
	if errors.Is(err, stream.ErrKeyDestroyed) {
		threadKeys, err = k.create(ctx, thread)
	}
	if err != nil {
		return nil, err
	}
	return threadKeys.aead.Encrypt(plain, place)
}

// Decrypt implements stream.Cipher. A key that the thread's keyset in memory lacks may be a newer one,
// so Decrypt reads the keyset again.
func (k *Keys) Decrypt(ctx context.Context, thread string, ciphertext, place []byte) ([]byte, error) {
	threadKeys, err := k.threadKey(ctx, thread)
	if err == nil && !threadKeys.has(ciphertext) {
		threadKeys, err = k.fetchThreadKey(ctx, thread)
	}
	if err != nil {
		return nil, err
	}
	if !threadKeys.has(ciphertext) {
		return nil, stream.ErrGone
	}
	return threadKeys.aead.Decrypt(ciphertext, place)
}

// Destroy implements stream.Cipher. The server overwrites the key's bytes before it forgets the key;
// the marker of the deletion then tells all processes.
func (k *Keys) Destroy(ctx context.Context, thread string) error {
	name := threadPrefix + thread
	for range maxConflicts {
		value, revision, err := k.log.LastValue(ctx, k.bucket, name)
		if err != nil {
			return err
		}
		if value == nil {
			break
		}
		if err := k.erase(ctx, revision); err != nil {
			return err
		}
	}
	k.forget(thread)
	return asUnavailable(k.bucket.Purge(ctx, name, jetstream.PurgeTTL(markerTTL)))
}
