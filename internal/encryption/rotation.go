package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Rotations may run while all processes work, and several times. One that is interrupted is run
// again.

// Operator returns the ID of the first of the operator's keys, which encrypts.
func (k *Keys) Operator() string { return k.operators[0].ID }

// RotateOperator encrypts the keys of all tenants with the first of the operator's keys, and returns
// their number. Afterwards the operator's other keys are not in use.
func (k *Keys) RotateOperator(ctx context.Context) (int, error) {
	tenants, err := stream.Keys(ctx, k.bucket, tenantPrefix+"*")
	if err != nil {
		return 0, err
	}
	for i, name := range tenants {
		tenant := strings.TrimPrefix(name, tenantPrefix)
		if _, err := k.changeTenantKey(ctx, tenant, func(current *keys) (*keys, error) { return current, nil }); err != nil {
			return i, err
		}
	}
	return len(tenants), nil
}

// RotateTenants gives every tenant a new key, and encrypts the keys of all threads with it. It
// returns the numbers of tenants and threads.
//
// The key that encrypted before stays in the tenant's keyset until the next rotation: a process that
// has not received the new one yet may still encrypt a thread's key with it. Older keys are removed.
func (k *Keys) RotateTenants(ctx context.Context) (tenants, threads int, err error) {
	names, err := stream.Keys(ctx, k.bucket, tenantPrefix+"*")
	if err != nil {
		return 0, 0, err
	}
	for i, name := range names {
		n, err := k.rotateTenant(ctx, strings.TrimPrefix(name, tenantPrefix))
		threads += n
		if err != nil {
			return i, threads, err
		}
	}
	return len(names), threads, nil
}

// rotateTenant rotates the key of one tenant. It removes older keys only after no thread needs them.
func (k *Keys) rotateTenant(ctx context.Context, tenant string) (threads int, err error) {
	var before *keys
	rotated, err := k.changeTenantKey(ctx, tenant, func(current *keys) (*keys, error) {
		before = current
		return current.withNewPrimary()
	})
	if err != nil {
		return 0, err
	}
	names, err := stream.Keys(ctx, k.bucket, threadPrefix+tenant+".*")
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		err := k.changeThreadKey(ctx, strings.TrimPrefix(name, threadPrefix), func(current *keys) (*keys, error) { return current, nil })
		if err != nil {
			return i, err
		}
	}
	_, err = k.changeTenantKey(ctx, tenant, func(current *keys) (*keys, error) {
		if current.primary() != rotated.primary() {
			return current, nil // a concurrent rotation has begun
		}
		return current.without(slices.DeleteFunc(slices.Clone(before.ids), func(id uint32) bool { return id == before.primary() }))
	})
	return len(names), err
}

// RotateThreads gives every thread a new data key, and returns their number. The earlier keys stay in
// the thread's keyset, for what they have encrypted.
func (k *Keys) RotateThreads(ctx context.Context) (int, error) {
	names, err := stream.Keys(ctx, k.bucket, threadPrefix+">")
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		err := k.changeThreadKey(ctx, strings.TrimPrefix(name, threadPrefix), (*keys).withNewPrimary)
		if err != nil {
			return i, err
		}
	}
	return len(names), nil
}

// changeTenantKey replaces the keys of a tenant by what change returns, encrypted with the operator's
// first key, and erases the earlier value.
func (k *Keys) changeTenantKey(ctx context.Context, tenant string, change func(*keys) (*keys, error)) (*keys, error) {
	var changed *keys
	err := k.replace(ctx, tenantPrefix+tenant, func() ([]byte, uint64, error) {
		current, err := k.fetchTenantKey(ctx, tenant)
		if err != nil {
			return nil, 0, err
		}
		if changed, err = change(current); err != nil {
			return nil, 0, err
		}
		value, err := k.encodeTenantKey(ctx, tenant, changed)
		return value, current.revision, err
	})
	k.tenants.Remove(tenant)
	return changed, err
}

// changeThreadKey replaces the keys of a thread by what change returns, encrypted with the key of its
// tenant, and erases the earlier value. It does nothing if the key was destroyed.
func (k *Keys) changeThreadKey(ctx context.Context, thread string, change func(*keys) (*keys, error)) error {
	err := k.replace(ctx, threadPrefix+thread, func() ([]byte, uint64, error) {
		current, err := k.fetchThreadKey(ctx, thread)
		if err != nil {
			return nil, 0, err
		}
		changed, err := change(current)
		if err != nil {
			return nil, 0, err
		}
		tenant, err := k.tenantKey(ctx, tenantOf(thread), false)
		if err != nil {
			return nil, 0, err
		}
		value, err := changed.encode(ctx, tenant, threadPrefix+thread)
		return value, current.revision, err
	})
	k.threads.Remove(thread)
	if errors.Is(err, stream.ErrKeyDestroyed) {
		return nil
	}
	return err
}

// maxConflicts bounds the repetitions of a change that concurrent changes have refused.
const maxConflicts = 10

// replace writes the value that next returns in place of the one with its revision, and erases that
// one. It repeats both if the value was changed meanwhile.
func (k *Keys) replace(ctx context.Context, name string, next func() (value []byte, revision uint64, err error)) error {
	for range maxConflicts {
		value, revision, err := next()
		if err != nil {
			return err
		}
		_, err = k.bucket.Update(ctx, name, value, revision)
		if err == nil {
			return k.erase(ctx, revision)
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return asUnavailable(err)
		}
	}
	return fmt.Errorf("encryption: %s is changed all the time", name)
}
