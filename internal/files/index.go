package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Index has all files and resumable uploads in memory, without their names. It follows the bucket: a
// change arrives a moment after it was written. The caller stops it. It is safe for concurrent use.
type Index struct {
	*watch.Watch
	store *Store

	mu sync.RWMutex
	indexed
	// revision is the revision of the bucket that the index has reached.
	revision uint64
}

// indexed is what the keys of files have. One watch follows all of them, in the order in which they were
// written: the bytes of a reservation that has ended are those of an upload or a file that came before.
type indexed struct {
	tenants  tenantFiles
	uploads  tenantUploads
	reserved reservations
}

// newIndexed returns an indexed without entries.
func newIndexed() indexed { return indexed{tenantFiles{}, tenantUploads{}, reservations{}} }

// tenantFiles are files.
type tenantFiles byTenant[*File]

// Watch begins an index, and returns when it has the present files.
func (s *Store) Watch(ctx context.Context) (*Index, error) {
	x := &Index{store: s}
	receiver := watch.Receiver{Load: func() watch.Loading { return &loading{x, newIndexed()} }, Take: x.take}
	var err error
	if x.Watch, err = watch.Begin(ctx, watch.Source{Log: s.log, Bucket: s.bucket, Keys: filePrefix + ">"}, receiver); err != nil {
		return nil, fmt.Errorf("files: index: %w", err)
	}
	return x, nil
}

// Bytes returns the bytes of all files of a tenant, those that its resumable uploads will have, and those
// that are reserved (see Reserve). Those of files with the same bytes count for each of them.
func (x *Index) Bytes(tenant string) (n int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, f := range x.tenants[stream.KeyToken(tenant)] {
		n += f.Size
	}
	return n + x.reserved.bytes(tenant) + x.uploads.bytes(tenant)
}

// Reserve counts the bytes of an upload among those of its tenant, in all processes, until the caller
// calls release. It returns when this index has the reservation, and all that were made before: of
// concurrent uploads that each reserve and then compare Bytes with a quota, the last one sees them all.
// Errors: stream.ErrUnavailable.
func (x *Index) Reserve(ctx context.Context, tenant string, size int64) (release func(), err error) {
	value, err := json.Marshal(reservation{size})
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	key := fileKey(tenant, reservationPrefix+newName())
	revision, err := x.store.bucket.Create(ctx, key, value, jetstream.KeyTTL(reservationTime))
	if err != nil {
		return nil, unavailable(err)
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = x.store.bucket.Purge(ctx, key, jetstream.PurgeTTL(markerTTL)) // else it ends after reservationTime
	}
	if err := x.await(ctx, revision); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// await blocks until the index has a revision of the bucket.
func (x *Index) await(ctx context.Context, revision uint64) error {
	late := time.NewTimer(indexTime)
	defer late.Stop()
	for {
		changed := x.Changed()
		x.mu.RLock()
		isCurrent := x.revision >= revision
		x.mu.RUnlock()
		if isCurrent {
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			return unavailable(errors.New("the index is not current"))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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

// List returns the files of a tenant that an owner has uploaded, the newest first, and of these only
// those after a position; "" = all.
func (x *Index) List(tenant, owner, after string) (all []*File) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, f := range x.tenants[stream.KeyToken(tenant)] {
		if f.Owner == owner && (after == "" || f.Position() < after) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *File) int { return strings.Compare(b.Position(), a.Position()) })
	return all
}

// Uploads returns the IDs of the resumable uploads of an owner, in order.
func (x *Index) Uploads(tenant, owner string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.uploads.list(tenant, owner)
}

// allUploads returns the resumable uploads of all tenants.
func (x *Index) allUploads() []*Resumable {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.uploads.all()
}

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
	index *Index
	indexed
}

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) { l.set(entry) }

// Done implements [watch.Loading].
func (l *loading) Done(_ context.Context, revision uint64) {
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.indexed, l.index.revision = l.indexed, revision
}

// take applies a change of the bucket, see [watch.Receiver].
func (x *Index) take(_ context.Context, change jetstream.KeyValueEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.set(change)
	x.revision = max(x.revision, change.Revision())
}

// set applies an entry.
func (x *indexed) set(entry jetstream.KeyValueEntry) {
	tenant, id, ok := strings.Cut(strings.TrimPrefix(entry.Key(), filePrefix), ".")
	switch {
	case !ok:
	case strings.HasPrefix(id, reservationPrefix):
		byTenant[int64](x.reserved).set(tenant, id, entry, decodeReservation)
	case strings.HasPrefix(id, uploadIDPrefix):
		byTenant[*Resumable](x.uploads).set(tenant, id, entry, decodeIndexedUpload)
	default:
		byTenant[*File](x.tenants).set(tenant, id, entry, decodeIndexedFile)
	}
}

// decodeIndexedFile decodes a file, without its name, which is encrypted.
func decodeIndexedFile(entry jetstream.KeyValueEntry) (f *File, err error) {
	err = json.Unmarshal(entry.Value(), &f)
	return f, err //nolint:wrapcheck // the entry is as none
}
