package files

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Index has all files and resumable uploads in memory, without their names. It follows the bucket: a
// change arrives a moment after it was written. The caller stops it. It is safe for concurrent use.
type Index struct {
	*watch.Watch // of files

	mu      sync.RWMutex
	tenants tenantFiles
	uploads uploadIndex
}

// tenantFiles are files by the token of their tenant and their ID.
type tenantFiles map[string]map[string]*File

// Watch begins an index, and returns when it has the present files.
func (s *Store) Watch(ctx context.Context) (*Index, error) {
	x := &Index{}
	receiver := watch.Receiver{Load: func() watch.Loading { return &loading{x, tenantFiles{}} }, Take: x.take}
	var err error
	if x.Watch, err = watch.Begin(ctx, watch.Source{Log: s.log, Bucket: s.bucket, Keys: filePrefix + ">"}, receiver); err != nil {
		return nil, fmt.Errorf("files: index: %w", err)
	}
	if err := x.uploads.begin(ctx, s); err != nil {
		x.Watch.Stop()
		return nil, err
	}
	return x, nil
}

// Stop ends the index, see [watch.Watch.Stop].
func (x *Index) Stop() {
	x.Watch.Stop()
	x.uploads.Stop()
}

// UploadsChanged is Changed for the resumable uploads, which have a watch of their own.
func (x *Index) UploadsChanged() <-chan struct{} { return x.uploads.Changed() }

// Bytes returns the bytes of all files of a tenant, and those that its resumable uploads will have. Those
// of files with the same bytes count for each of them.
func (x *Index) Bytes(tenant string) (n int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, f := range x.tenants[stream.KeyToken(tenant)] {
		n += f.Size
	}
	return n + x.uploads.bytes(tenant)
}

// OfThread returns the IDs of the files to which a thread refers, in order.
func (x *Index) OfThread(t stream.Thread) (ids []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for id, f := range x.tenants[stream.KeyToken(t.Tenant)] {
		if f.IsOf(t.ID) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// List returns the files of a tenant that an owner has uploaded, the newest first.
func (x *Index) List(tenant, owner string) (all []*File) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, f := range x.tenants[stream.KeyToken(tenant)] {
		if f.Owner == owner {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *File) int {
		if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Uploads returns the IDs of the resumable uploads of an owner, in order.
func (x *Index) Uploads(tenant, owner string) []string { return x.uploads.list(tenant, owner) }

// all returns the files of all tenants.
func (x *Index) all() (all []*File) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, ofTenant := range x.tenants {
		for _, f := range ofTenant {
			all = append(all, f)
		}
	}
	return all
}

// loading collects the present files.
type loading struct {
	index   *Index
	tenants tenantFiles
}

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) { l.tenants.set(entry) }

// Done implements [watch.Loading].
func (l *loading) Done(context.Context, uint64) {
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.tenants = l.tenants
}

// take applies a change of the bucket, see [watch.Receiver].
func (x *Index) take(_ context.Context, change jetstream.KeyValueEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tenants.set(change)
}

// set applies an entry of a file.
func (t tenantFiles) set(entry jetstream.KeyValueEntry) {
	tenant, id, ok := strings.Cut(strings.TrimPrefix(entry.Key(), filePrefix), ".")
	if !ok {
		return
	}
	f := new(File)
	if entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(entry.Value(), f) != nil {
		if delete(t[tenant], id); len(t[tenant]) == 0 {
			delete(t, tenant)
		}
		return
	}
	if t[tenant] == nil {
		t[strings.Clone(tenant)] = map[string]*File{}
	}
	t[tenant][f.ID] = f
}
