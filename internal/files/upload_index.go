package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// uploadIndex has the resumable uploads, by the token of their tenant and their ID.
type uploadIndex struct {
	*watch.Watch

	mu      sync.RWMutex
	tenants tenantUploads
}

type tenantUploads map[string]map[string]*Resumable

// begin begins the index, and returns when it has the present uploads.
func (x *uploadIndex) begin(ctx context.Context, s *Store) (err error) {
	receiver := watch.Receiver{Load: func() watch.Loading { return &loadingUploads{x, tenantUploads{}} }, Take: x.take}
	if x.Watch, err = watch.Begin(ctx, watch.Source{Log: s.log, Bucket: s.bucket, Keys: uploadPrefix + ">"}, receiver); err != nil {
		return fmt.Errorf("files: index of uploads: %w", err)
	}
	return nil
}

// bytes returns the bytes of the files that the uploads of a tenant will be. Those that are stored are
// files.
func (x *uploadIndex) bytes(tenant string) (n int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, u := range x.tenants[stream.KeyToken(tenant)] {
		if !u.IsStored {
			n += u.Size
		}
	}
	return n
}

// list returns the IDs of the uploads of an owner, in order.
func (x *uploadIndex) list(tenant, owner string) (ids []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for id, u := range x.tenants[stream.KeyToken(tenant)] {
		if u.Owner == owner {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// loadingUploads collects the present uploads.
type loadingUploads struct {
	index   *uploadIndex
	tenants tenantUploads
}

// Take implements [watch.Loading].
func (l *loadingUploads) Take(entry jetstream.KeyValueEntry) { l.tenants.set(entry) }

// Done implements [watch.Loading].
func (l *loadingUploads) Done(context.Context, uint64) {
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.tenants = l.tenants
}

// take applies a change of the bucket, see [watch.Receiver].
func (x *uploadIndex) take(_ context.Context, change jetstream.KeyValueEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tenants.set(change)
}

// set applies an entry of an upload.
func (t tenantUploads) set(entry jetstream.KeyValueEntry) {
	tenant, id, ok := strings.Cut(strings.TrimPrefix(entry.Key(), uploadPrefix), ".")
	if !ok {
		return
	}
	if entry.Operation() == jetstream.KeyValuePut {
		if u, err := decodeUpload(entry.Key(), entry.Value()); err == nil {
			if t[tenant] == nil {
				t[strings.Clone(tenant)] = map[string]*Resumable{}
			}
			u.Parts, u.encodedName = nil, nil // the index needs neither
			t[tenant][u.ID] = u
			return
		}
	}
	if delete(t[tenant], id); len(t[tenant]) == 0 {
		delete(t, tenant)
	}
}
