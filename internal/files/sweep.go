package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// interruptedAge is the age from which an upload that has not ended was interrupted, and from which a
// thread that refers to a file must exist: its first input may be on the way.
const interruptedAge = 2 * UploadTime

// Sweep deletes files to which no thread refers and that are older than Lifetime, resumable uploads that
// have expired, and what interrupted uploads and deletions have left. exists reports whether a thread has
// records. It continues after a failure, and returns all failures. It begins at a random place, so that what
// one call does not reach before ctx ends, a later one does.
func (s *Store) Sweep(ctx context.Context, x *Index, now time.Time, exists func(context.Context, stream.Thread) (bool, error)) error {
	var failures []error
	fail := func(what string, err error) {
		if err != nil {
			failures = append(failures, fmt.Errorf("files: sweep %s: %w", what, err))
		}
	}
	for _, f := range rotated(x.all()) {
		if ctx.Err() != nil {
			break
		}
		fail(f.ID, s.sweepFile(ctx, f, now, exists))
	}
	for _, u := range rotated(x.allUploads()) {
		if ctx.Err() != nil {
			break
		}
		if now.After(u.ExpiresAt()) {
			fail(u.ID, s.DeleteUpload(ctx, u.Tenant, u.ID))
		}
	}
	contents := func() error {
		return s.each(ctx, contentPrefix, func(key string, value []byte) error { return s.sweepContent(ctx, key, value, now) })
	}
	blobs := func() error {
		return s.each(ctx, blobPrefix, func(key string, value []byte) error { return s.sweepBlob(ctx, key, value, now) })
	}
	for _, sweep := range rotated([]func() error{contents, blobs}) {
		fail("entries", sweep())
	}
	return errors.Join(failures...)
}

// rotated returns the elements of a list from a random one on, followed by those before it.
func rotated[E any](list []E) []E {
	if len(list) == 0 {
		return nil
	}
	first := rand.N(len(list)) //nolint:gosec // the place is no secret
	return slices.Concat(list[first:], list[:first])
}

// sweepFile deletes a file that has expired, and releases it from threads that do not exist.
func (s *Store) sweepFile(ctx context.Context, f *File, now time.Time, exists func(context.Context, stream.Thread) (bool, error)) error {
	if isExpired := func(f *File) bool { return len(f.Threads) == 0 && now.After(f.ExpiresAt()) }; isExpired(f) {
		return s.deleteIf(ctx, f.Tenant, f.ID, isExpired)
	}
	for thread, since := range f.Threads {
		if now.Sub(since) < interruptedAge {
			continue
		}
		found, err := exists(ctx, stream.Thread{Tenant: f.Tenant, ID: thread})
		if err == nil && !found {
			err = s.releaseIf(ctx, f.Tenant, f.ID, thread, func(current time.Time) bool { return current.Equal(since) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepContent removes files that do not exist from those with some bytes.
func (s *Store) sweepContent(ctx context.Context, key string, value []byte, now time.Time) error {
	var c storedContent
	if err := json.Unmarshal(value, &c); err != nil {
		return fmt.Errorf("files: %s: %w", key, err)
	}
	gone := map[string]time.Time{}
	for id, since := range c.Files {
		if now.Sub(since) < interruptedAge {
			continue
		}
		entry, _, err := s.log.LastValue(ctx, s.bucket, fileKey(c.Tenant, id))
		if err != nil {
			return unavailable(err)
		}
		if entry == nil {
			gone[id] = since
		}
	}
	digest := key[strings.LastIndexByte(key, '.')+1:]
	return s.dropFiles(ctx, c.Tenant, digest, func(id string, since time.Time) bool {
		seen, ok := gone[id]
		return ok && since.Equal(seen) // else an upload is storing the file again
	})
}

// sweepBlob removes the blob of an interrupted upload or deletion: one that is old, and that neither the
// value of its digest nor its resumable upload names.
func (s *Store) sweepBlob(ctx context.Context, key string, value []byte, now time.Time) error {
	var b storedBlob
	if err := json.Unmarshal(value, &b); err != nil {
		return fmt.Errorf("files: %s: %w", key, err)
	}
	if now.Sub(b.CreatedAt) < interruptedAge {
		return nil
	}
	blob := key[strings.LastIndexByte(key, '.')+1:]
	isNamed, err := s.isNamed(ctx, blob, b)
	if err != nil || isNamed {
		return err
	}
	return s.removeBlob(ctx, b.Tenant, blob)
}

// isNamed reports whether the value of a blob's digest, or its resumable upload, names the blob.
func (s *Store) isNamed(ctx context.Context, blob string, b storedBlob) (bool, error) {
	var key string
	switch {
	case b.Upload != "":
		key = uploadKey(b.Tenant, b.Upload)
	case b.Digest != "":
		key = contentKey(b.Tenant, b.Digest)
	default:
		return false, nil
	}
	value, _, err := s.log.LastValue(ctx, s.bucket, key)
	if err != nil || value == nil {
		return false, unavailable(err)
	}
	if b.Upload != "" {
		u, err := decodeUpload(key, value)
		return err == nil && u.has(blob), err
	}
	var c storedContent
	if err := json.Unmarshal(value, &c); err != nil {
		return false, fmt.Errorf("files: %s: %w", key, err)
	}
	return c.Blob == blob, nil
}

// each calls take for every key of the bucket that begins with a prefix.
func (s *Store) each(ctx context.Context, prefix string, take func(key string, value []byte) error) error {
	keys, err := stream.Keys(ctx, s.bucket, prefix+">")
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	for _, key := range rotated(keys) {
		value, _, err := s.log.LastValue(ctx, s.bucket, key)
		if err != nil {
			return unavailable(err)
		}
		if value == nil {
			continue
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}
