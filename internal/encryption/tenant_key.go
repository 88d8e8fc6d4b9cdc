package encryption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// tenantPrefix begins the keys of tenants in the bucket; the tenant's token follows.
const tenantPrefix = "tenant."

// storedTenantKey is the value of a tenant's key in the bucket.
type storedTenantKey struct {
	// OperatorKey is the ID of the operator's key that has encrypted Keyset.
	OperatorKey string `json:"operatorKey"`
	Keyset      []byte `json:"keyset"`
}

// tenantKey returns the keys of a tenant, by its token. It creates them if they are missing and
// create is true.
func (k *Keys) tenantKey(ctx context.Context, tenant string, create bool) (*keys, error) {
	if cached, ok := k.tenants.Get(tenant); ok {
		return cached, nil
	}
	for range maxConflicts {
		fetched, err := k.fetchTenantKey(ctx, tenant)
		if !errors.Is(err, errMissing) || !create {
			return fetched, err
		}
		created, err := newKeys()
		if err != nil {
			return nil, err
		}
		value, err := k.encodeTenantKey(ctx, tenant, created)
		if err != nil {
			return nil, err
		}
		if _, err := k.bucket.Create(ctx, tenantPrefix+tenant, value); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, asUnavailable(err)
		}
		// Read it again: another process may have been faster.
	}
	return nil, fmt.Errorf("encryption: %w: the key of tenant %s cannot be created", stream.ErrUnavailable, tenant)
}

// fetchTenantKey reads the keys of a tenant from the bucket into memory. Errors: errMissing.
func (k *Keys) fetchTenantKey(ctx context.Context, tenant string) (*keys, error) {
	value, revision, err := k.log.LastValue(ctx, k.bucket, tenantPrefix+tenant)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, errMissing
	}
	var stored storedTenantKey
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, fmt.Errorf("encryption: the key of tenant %s: %w", tenant, err)
	}
	by, err := k.operatorKey(stored.OperatorKey)
	if err != nil {
		return nil, fmt.Errorf("encryption: the key of tenant %s: %w", tenant, err)
	}
	fetched, err := decodeKeys(ctx, stored.Keyset, by, tenantPrefix+tenant, revision)
	if err != nil {
		return nil, err
	}
	k.tenants.Add(tenant, fetched)
	return fetched, nil
}

// encodeTenantKey returns the value of a tenant's key in the bucket, encrypted with the operator's
// first key.
func (k *Keys) encodeTenantKey(ctx context.Context, tenant string, tenantKeys *keys) ([]byte, error) {
	by := k.operators[0]
	keyset, err := tenantKeys.encode(ctx, by, tenantPrefix+tenant)
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedTenantKey{OperatorKey: by.ID, Keyset: keyset})
}

// operatorKey returns the operator's key with an ID.
func (k *Keys) operatorKey(id string) (bound, error) {
	i := slices.IndexFunc(k.operators, func(b bound) bool { return b.ID == id })
	if i < 0 {
		return bound{}, fmt.Errorf("%w: it is encrypted with the key %s", ErrUnknownOperatorKey, id)
	}
	return k.operators[i], nil
}

// checkTenantKeys checks that the operator's keys include those of all tenants. It decrypts none.
func (k *Keys) checkTenantKeys(ctx context.Context) error {
	tenants, err := stream.Keys(ctx, k.bucket, tenantPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range tenants {
		value, _, err := k.log.LastValue(ctx, k.bucket, name)
		if err != nil {
			return err
		}
		var stored storedTenantKey
		if value == nil || json.Unmarshal(value, &stored) != nil {
			continue
		}
		if _, err := k.operatorKey(stored.OperatorKey); err != nil {
			return fmt.Errorf("encryption: the key of tenant %s: %w", strings.TrimPrefix(name, tenantPrefix), err)
		}
	}
	return nil
}
