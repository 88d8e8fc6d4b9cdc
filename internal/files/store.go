package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	"github.com/perdure/perdure/stream"
)

// markerTTL is how long the bucket keeps the marker of a deleted key.
const markerTTL = time.Minute

// cleanupTime bounds the removal of a blob whose upload has failed. It continues if the caller is gone.
const cleanupTime = 10 * time.Second

// DefaultMaxSize is the default of Options.MaxSize.
const DefaultMaxSize = 100 << 20

// Options configure a Store. Zero values have defaults.
type Options struct {
	// Storage stores the bytes. nil = NATS.
	Storage Storage
	// Scanner scans files before they can be read. nil = files are not scanned.
	Scanner Scanner
	// MaxSize bounds a file, in bytes. Defaults to DefaultMaxSize.
	MaxSize int64
}

// Store stores files. It is safe for concurrent use, and owns no goroutine.
type Store struct {
	log     *stream.Log
	bucket  jetstream.KeyValue
	storage Storage
	scanner Scanner
	maxSize int64
	// finishing are the calls of FinishUpload, by the keys of uploads.
	finishing singleflight.Group
}

// Open opens the store, and creates its bucket and its stream if they are missing.
func Open(ctx context.Context, l *stream.Log, o Options) (*Store, error) {
	s := &Store{log: l, storage: o.Storage, scanner: o.Scanner, maxSize: o.MaxSize}
	if s.maxSize == 0 {
		s.maxSize = DefaultMaxSize
	}
	var err error
	if s.bucket, err = l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "files", Description: "Perdure: files of tenants", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	}); err != nil {
		return nil, err
	}
	if s.storage == nil {
		if s.storage, err = openChunks(ctx, l); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// MaxSize returns the largest size of a file, in bytes.
func (s *Store) MaxSize() int64 { return s.maxSize }

// storedFile is the value of a file in the bucket. Name is encrypted with the key of the blob.
type storedFile struct {
	File

	EncodedName json.RawMessage `json:"name,omitempty"`
}

// refer adds a thread to those that refer to the file. It renews the time of an old reference: the thread
// may have been deleted, and begin again.
func (f *storedFile) refer(thread string, now time.Time) {
	if since, ok := f.Threads[thread]; ok && now.Sub(since) < interruptedAge/2 {
		return
	}
	if f.Threads == nil {
		f.Threads = map[string]time.Time{}
	}
	f.Threads[thread] = now
}

// storedBlob is the value of a blob.
type storedBlob struct {
	Tenant    string    `json:"tenant"`
	CreatedAt time.Time `json:"createdAt"`
	Key       []byte    `json:"key,omitempty"` // encrypted; nil = the blob is not
	// Digest is the digest of the bytes, whose value names the blob; "" = they are not complete.
	Digest string `json:"digest,omitempty"`
	// Upload is the ID of the resumable upload of which the blob is a part; "" = it is that of files.
	Upload string `json:"upload,omitempty"`
}

// storedContent is the value of a digest: the blob, and the files that have it, with the times at
// which they got it.
type storedContent struct {
	Tenant string               `json:"tenant"`
	Blob   string               `json:"blob"`
	Files  map[string]time.Time `json:"files"`
}

// newName returns a random name of a blob or of a file.
func newName() string { return strings.ToLower(rand.Text()) }

// Find returns a file of a tenant. Errors: ErrUnknown.
func (s *Store) Find(ctx context.Context, tenant, id string) (*File, error) {
	if !isID(id) {
		return nil, ErrUnknown
	}
	key := fileKey(tenant, id)
	value, _, err := s.log.LastValue(ctx, s.bucket, key)
	if err != nil {
		return nil, unavailable(err)
	}
	if value == nil {
		return nil, ErrUnknown
	}
	return s.decode(ctx, key, value)
}

// decode returns a file from its value. Errors: ErrUnknown if its key was destroyed, because it is
// being deleted.
func (s *Store) decode(ctx context.Context, key string, value []byte) (*File, error) {
	var stored storedFile
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, fmt.Errorf("files: entry %s: %w", key, err)
	}
	if stored.EncodedName == nil {
		return &stored.File, nil
	}
	name, err := s.log.DecryptEntry(ctx, key, stored.EncodedName)
	if errors.Is(err, stream.ErrGone) {
		return nil, ErrUnknown
	}
	if err == nil {
		err = json.Unmarshal(name, &stored.File.Name)
	}
	return &stored.File, err
}

// Open returns the bytes of a file. The caller closes the result before ctx ends. Errors: ErrUnknown.
func (s *Store) Open(ctx context.Context, f *File) (*Content, error) {
	return s.openBlob(ctx, f.Tenant, f.Content.Blob, f.Size)
}

// openBlob returns the bytes of a blob of a size. Errors: ErrUnknown.
func (s *Store) openBlob(ctx context.Context, tenant, blob string, size int64) (*Content, error) {
	value, _, err := s.log.LastValue(ctx, s.bucket, blobKey(tenant, blob))
	if err != nil {
		return nil, unavailable(err)
	}
	if value == nil {
		return nil, ErrUnknown
	}
	var stored storedBlob
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, fmt.Errorf("files: blob %s: %w", blob, err)
	}
	key, err := openKey(ctx, s.log, tenant, blob, stored.Key)
	if errors.Is(err, stream.ErrGone) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	return &Content{ctx: ctx, storage: s.storage, blob: blob, key: key, size: size}, nil
}

// Attach adds a thread to those that refer to a file. Errors: ErrUnknown, ErrManyThreads.
func (s *Store) Attach(ctx context.Context, tenant, id, thread string) error {
	return s.changeFile(ctx, tenant, id, func(f *storedFile) (*storedFile, error) {
		switch {
		case f == nil:
			return nil, ErrUnknown
		case !f.IsOf(thread) && len(f.Threads) >= maxThreads:
			return nil, ErrManyThreads
		}
		f.refer(thread, time.Now().UTC())
		return f, nil
	})
}

// Release removes a thread from those that refer to a file, and deletes the file if it was the last
// one. It succeeds if the file is unknown.
func (s *Store) Release(ctx context.Context, tenant, id, thread string) error {
	return s.releaseIf(ctx, tenant, id, thread, func(time.Time) bool { return true })
}

// releaseIf is Release if the time of the reference has a property at that moment.
func (s *Store) releaseIf(ctx context.Context, tenant, id, thread string, has func(since time.Time) bool) error {
	var deleted *File
	err := s.changeFile(ctx, tenant, id, func(f *storedFile) (*storedFile, error) {
		if deleted = nil; f == nil || !f.IsOf(thread) || !has(f.Threads[thread]) {
			return f, nil
		}
		if delete(f.Threads, thread); len(f.Threads) > 0 {
			return f, nil
		}
		deleted = &f.File
		return nil, nil
	})
	if err != nil || deleted == nil {
		return err
	}
	return s.dropContent(ctx, deleted)
}

// Delete deletes a file if check returns nil for each thread that refers to the file at that moment. Otherwise the
// file stays, and Delete returns the error of check. It succeeds if the file is unknown.
func (s *Store) Delete(ctx context.Context, tenant, id string, check func(thread string) error) error {
	var refusal error
	err := s.deleteIf(ctx, tenant, id, func(f *File) bool {
		refusal = nil
		for thread := range f.Threads {
			if refusal = check(thread); refusal != nil {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return refusal
}

// DeleteUnused deletes a file to which no thread refers. Another file stays.
func (s *Store) DeleteUnused(ctx context.Context, tenant, id string) error {
	return s.deleteIf(ctx, tenant, id, func(f *File) bool { return len(f.Threads) == 0 })
}

// deleteIf deletes a file if it has a property at that moment. It calls has again if the file was changed
// meanwhile.
func (s *Store) deleteIf(ctx context.Context, tenant, id string, has func(*File) bool) error {
	var deleted *File
	err := s.changeFile(ctx, tenant, id, func(f *storedFile) (*storedFile, error) {
		if deleted = nil; f == nil || !has(&f.File) {
			return f, nil
		}
		deleted = &f.File
		return nil, nil
	})
	if err != nil || deleted == nil {
		return err
	}
	return s.dropContent(ctx, deleted)
}

// dropContent removes a file that was deleted from those with its bytes, and the blob with the last
// one. The file stays if an upload is storing it again.
func (s *Store) dropContent(ctx context.Context, f *File) error {
	return s.dropFiles(ctx, f.Tenant, f.Content.Digest, func(id string, since time.Time) bool { return id == f.ID && !since.After(f.CreatedAt) })
}

// dropFiles removes files from those with some bytes, and the blob with the last one.
func (s *Store) dropFiles(ctx context.Context, tenant, digest string, isDropped func(id string, since time.Time) bool) error {
	blob := ""
	err := s.change(ctx, contentKey(tenant, digest), func(value []byte) ([]byte, error) {
		if blob = ""; value == nil {
			return nil, nil
		}
		var c storedContent
		if err := json.Unmarshal(value, &c); err != nil {
			return nil, fmt.Errorf("files: content: %w", err)
		}
		if maps.DeleteFunc(c.Files, isDropped); len(c.Files) > 0 {
			return json.Marshal(c)
		}
		blob = c.Blob
		return nil, nil
	})
	if err != nil || blob == "" {
		return err
	}
	return s.removeBlob(ctx, tenant, blob)
}

// removeBlob removes a blob to which no content refers: first its key, and last its entry, so that
// Sweep finds what an interruption leaves.
func (s *Store) removeBlob(ctx context.Context, tenant, blob string) error {
	if err := s.removeBytes(ctx, tenant, blob); err != nil {
		return err
	}
	return unavailable(s.bucket.Purge(ctx, blobKey(tenant, blob), jetstream.PurgeTTL(markerTTL)))
}

// removeBytes removes the key and the bytes of a blob that another process may still be writing; "" = none.
// The entry stays: if that process dies, Sweep finds by it what has arrived later.
func (s *Store) removeBytes(ctx context.Context, tenant, blob string) error {
	if blob == "" {
		return nil
	}
	if err := s.log.DestroyKey(ctx, keyName(tenant, blob)); err != nil {
		return err
	}
	return s.storage.Remove(ctx, blob)
}

// changeFile is change for the entry of a file; nil = there is none, or it is removed.
func (s *Store) changeFile(ctx context.Context, tenant, id string, next func(*storedFile) (*storedFile, error)) error {
	if !isID(id) {
		return ErrUnknown
	}
	return s.change(ctx, fileKey(tenant, id), func(value []byte) ([]byte, error) {
		var current *storedFile
		if value != nil {
			current = new(storedFile)
			if err := json.Unmarshal(value, current); err != nil {
				return nil, fmt.Errorf("files: file %s: %w", id, err)
			}
		}
		changed, err := next(current)
		if changed == nil || err != nil {
			return nil, err
		}
		return json.Marshal(changed)
	})
}

// maxConflicts bounds the repetitions of a change that concurrent changes have refused.
const maxConflicts = 50

// change replaces the value of a key by what next returns for it; nil = the key has none. It calls
// next again if another process has changed the value meanwhile, and writes nothing if it stays equal.
func (s *Store) change(ctx context.Context, key string, next func(value []byte) ([]byte, error)) error {
	for range maxConflicts {
		current, revision, err := s.log.LastValue(ctx, s.bucket, key)
		if err != nil {
			return unavailable(err)
		}
		changed, err := next(current)
		if err != nil || bytes.Equal(changed, current) {
			return err
		}
		if changed == nil {
			err = s.bucket.Purge(ctx, key, jetstream.LastRevision(revision), jetstream.PurgeTTL(markerTTL))
		} else {
			_, err = s.bucket.Update(ctx, key, changed, revision)
		}
		if !stream.IsConflict(err) {
			return unavailable(err)
		}
	}
	return fmt.Errorf("files: %w: %s is changed all the time", stream.ErrUnavailable, key)
}
