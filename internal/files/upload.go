package files

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/perdure/perdure/stream"
)

// UploadTime bounds one call of Put or Append. Sweep removes what belongs to no file after twice this time.
const UploadTime = time.Hour

// maxShares bounds the files with the same blob: the entry of their bytes has all of them. Further ones
// get a blob of their own.
const maxShares = 1_000

// Upload is a file to store.
type Upload struct {
	Tenant, Owner string
	// ID is the ID of the file. "" = a new one.
	ID string
	// Name is the name of the file, and Type its media type as the caller declares it; "" = unknown.
	Name, Type string
	// Thread is the thread that refers to the file; "" = none yet.
	Thread string
	// Body is read once. It is not buffered.
	Body io.Reader
}

// ErrIncomplete tells that the caller has broken off an upload.
var ErrIncomplete = errors.New("files: the upload broke off")

// Put stores a file. It returns when the storage has acknowledged all bytes; after an error nothing of it can be
// read. Errors: ErrTooLarge, ErrEmpty, ErrIncomplete, *ThreatError, stream.ErrUnavailable, those of u.Body.
func (s *Store) Put(ctx context.Context, u Upload) (*File, error) {
	ctx, cancel := context.WithTimeout(ctx, UploadTime)
	defer cancel()
	secret, err := s.secret(ctx, u.Tenant)
	if err != nil {
		return nil, err
	}
	if u.ID == "" {
		u.ID = idPrefix + newName()
	}
	f := &File{Tenant: u.Tenant, ID: u.ID, Name: u.Name, Owner: u.Owner, CreatedAt: time.Now().UTC(), Content: contentRef{Blob: newName()}}
	if u.Thread != "" {
		f.Threads = map[string]time.Time{u.Thread: f.CreatedAt}
	}
	blob := f.Content.Blob
	isKept := false
	defer func() {
		if isKept {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = s.removeBlob(ctx, u.Tenant, blob) // else Sweep does
	}()
	entry, err := s.write(ctx, f, u, hmac.New(sha256.New, secret))
	if err != nil {
		return nil, err
	}
	// A failed write may have taken effect, and other files may then have the blob: Sweep decides.
	isKept = true
	if err := s.share(ctx, f, entry); err != nil {
		return nil, err
	}
	if err := s.create(ctx, f); err != nil {
		return nil, err
	}
	isKept = f.Content.Blob == blob
	return f, nil
}

// write stores the bytes of a file as a new blob, and sets the file's type, size and digest. It returns
// the entry of the blob, which has no digest yet.
func (s *Store) write(ctx context.Context, f *File, u Upload, digest hash.Hash) (entry storedBlob, err error) {
	key, stored, err := newKey(ctx, s.log, f.Tenant, f.Content.Blob)
	if err != nil {
		return entry, err
	}
	entry = storedBlob{Tenant: f.Tenant, CreatedAt: f.CreatedAt, Key: stored}
	if err := s.putBlob(ctx, f.Content.Blob, entry); err != nil {
		return entry, err
	}
	body := &measured{r: u.Body, left: s.maxSize}
	head := bufio.NewReaderSize(body, sniffBytes)
	first, err := head.Peek(sniffBytes)
	switch {
	case len(first) == 0 && errors.Is(err, io.EOF):
		return entry, ErrEmpty
	case err != nil && !errors.Is(err, io.EOF):
		return entry, err
	}
	f.Type = TypeOf(u.Type, first)
	scan := beginScan(ctx, s.scanner)
	plain := io.TeeReader(head, io.MultiWriter(digest, scan))
	encrypted, err := encrypting(plain, key)
	if err == nil {
		err = s.storage.Write(ctx, f.Content.Blob, encrypted)
	}
	if threatErr := scan.end(err); err == nil {
		err = threatErr
	}
	if body.err != nil { // the storage may have wrapped it
		err = body.err
	}
	f.Size, f.Content.Digest = body.size, hex.EncodeToString(digest.Sum(nil))
	return entry, err
}

// putBlob writes the entry of a blob.
func (s *Store) putBlob(ctx context.Context, blob string, entry storedBlob) error {
	value, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	_, err = s.bucket.Put(ctx, blobKey(entry.Tenant, blob), value)
	return unavailable(err)
}

// errShared tells that as many files as may have some bytes.
var errShared = errors.New("files: too many files have the same bytes")

// share adds a file to those with its bytes, and gives it their blob if there are some. Beyond
// maxShares files, the digest has a suffix.
func (s *Store) share(ctx context.Context, f *File, entry storedBlob) error {
	digest := f.Content.Digest
	for n := 2; ; n++ {
		err := s.shareAs(ctx, f, entry)
		if !errors.Is(err, errShared) {
			return err
		}
		f.Content.Digest = fmt.Sprintf("%s-%d", digest, n)
	}
}

// shareAs is share for the digest of the file as it is. Errors: errShared.
func (s *Store) shareAs(ctx context.Context, f *File, entry storedBlob) error {
	own := f.Content.Blob
	entry.Digest = f.Content.Digest // before the content names the blob: see sweepBlob
	if err := s.putBlob(ctx, own, entry); err != nil {
		return err
	}
	return s.change(ctx, contentKey(f.Tenant, f.Content.Digest), func(value []byte) ([]byte, error) {
		c := storedContent{Tenant: f.Tenant, Blob: own, Files: map[string]time.Time{}}
		if value != nil {
			if err := json.Unmarshal(value, &c); err != nil {
				return nil, fmt.Errorf("files: content: %w", err)
			}
		}
		if len(c.Files) >= maxShares {
			return nil, errShared
		}
		if f.CreatedAt.After(c.Files[f.ID]) {
			c.Files[f.ID] = f.CreatedAt
		}
		f.Content.Blob = c.Blob
		return json.Marshal(c)
	})
}

// create writes the entry of a file. If the file exists, as one that is extracted from a message again,
// it only gets the thread, and the time of this upload, which its content has (see dropContent).
func (s *Store) create(ctx context.Context, f *File) error {
	key, stored := fileKey(f.Tenant, f.ID), &storedFile{File: *f}
	if f.Name != "" {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return fmt.Errorf("files: %w", err)
		}
		if stored.EncodedName, err = s.log.EncryptEntry(ctx, keyName(f.Tenant, f.Content.Blob), key, name); err != nil {
			return err
		}
	}
	return s.changeFile(ctx, f.Tenant, f.ID, func(existing *storedFile) (*storedFile, error) {
		if existing == nil {
			return stored, nil
		}
		for thread, since := range f.Threads {
			existing.refer(thread, since)
		}
		if f.CreatedAt.After(existing.CreatedAt) {
			existing.CreatedAt = f.CreatedAt
		}
		return existing, nil
	})
}

// measured counts the bytes of a body, and keeps its first error.
type measured struct {
	r          io.Reader
	size, left int64
	err        error // of r, or ErrTooLarge
}

// Read implements io.Reader.
func (m *measured) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	m.size, m.left = m.size+int64(n), m.left-int64(n)
	switch {
	case m.left < 0:
		m.err = ErrTooLarge
	case errors.Is(err, io.ErrUnexpectedEOF): // as net/http reports it
		m.err = ErrIncomplete
	case err != nil && !errors.Is(err, io.EOF):
		m.err = err
	default:
		return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
	}
	return 0, m.err
}

// secretOwner returns the name under which the log encrypts the secret of a tenant.
func secretOwner(tenant string) stream.Thread {
	return stream.Thread{Tenant: tenant, ID: "\x00files"}
}

// secret returns the secret of a tenant with which digests are made, and creates it if it is missing.
func (s *Store) secret(ctx context.Context, tenant string) ([]byte, error) {
	key := secretPrefix + stream.KeyToken(tenant)
	var secret []byte
	err := s.change(ctx, key, func(value []byte) ([]byte, error) {
		if value != nil {
			plain, err := s.log.DecryptEntry(ctx, key, value)
			if err != nil {
				return nil, err
			}
			return value, json.Unmarshal(plain, &secret)
		}
		secret = make([]byte, keyBytes)
		_, _ = rand.Read(secret) // never fails
		plain, err := json.Marshal(secret)
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		return s.log.EncryptEntry(ctx, secretOwner(tenant), key, plain)
	})
	return secret, err
}

// ExtractedID returns the ID of the file for bytes that a message of a thread has: the same bytes in the
// same thread have the same ID, so an input that has them again refers to the same file.
func (s *Store) ExtractedID(ctx context.Context, tenant, thread, mediaType, name string, content []byte) (string, error) {
	secret, err := s.secret(ctx, tenant)
	if err != nil {
		return "", err
	}
	digest := hmac.New(sha256.New, secret)
	for _, part := range [][]byte{[]byte(thread), []byte(mediaType), []byte(name), content} {
		_, _ = fmt.Fprintf(digest, "%d ", len(part)) // a hash does not fail
		_, _ = digest.Write(part)
	}
	return idPrefix + hex.EncodeToString(digest.Sum(nil))[:40], nil
}
