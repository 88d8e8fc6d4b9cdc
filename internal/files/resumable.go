package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// UploadsPath begins the URL of a resumable upload, which its ID follows.
const UploadsPath = "/v1/uploads/"

// Errors of resumable uploads.
var (
	// ErrUnknownUpload tells that the tenant has no such upload, or that it has expired.
	ErrUnknownUpload = errors.New("files: unknown upload")
	// ErrUploadChanged tells that another request has changed an upload meanwhile.
	ErrUploadChanged = errors.New("files: the upload was changed concurrently")
	// ErrManyParts tells that an upload has as many parts as may be.
	ErrManyParts = fmt.Errorf("files: the upload has %d parts", maxParts)
	// ErrManyBytes tells that a request has more bytes than its upload lacks.
	ErrManyBytes = errors.New("files: the body has more bytes than the upload lacks")
)

// Resumable is an upload that a client may continue after a failure. Its bytes are parts until all of
// them have arrived; then they become a file. It is not safe for concurrent use.
type Resumable struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Owner is the subject that has begun the upload; "" = an anonymous caller.
	Owner string `json:"owner,omitempty"`
	// Name and Type are those that the caller declares; "" = unknown. The index has no names.
	Name      string    `json:"-"`
	Type      string    `json:"type,omitempty"`
	Size      int64     `json:"size"` // of the file, in bytes
	CreatedAt time.Time `json:"createdAt"`
	// IsStored tells that the file was stored, and that the upload has no parts.
	IsStored bool   `json:"isStored,omitempty"`
	Parts    []part `json:"parts,omitempty"`
	// Next is the blob of the part that arrives, or has arrived when a process died; "" = there is none.
	// The next request removes the bytes that it has, and Sweep what arrives later.
	Next string `json:"next,omitempty"`

	encodedName json.RawMessage
	revision    uint64 // of the entry: a write with another one is refused
}

// Offset returns the number of bytes that have arrived.
func (u *Resumable) Offset() (n int64) {
	if u.IsStored {
		return u.Size
	}
	for _, p := range u.Parts {
		n += p.Size
	}
	return n
}

// ExpiresAt returns when the upload is deleted, also if it is complete. Its file has a Lifetime of its
// own.
func (u *Resumable) ExpiresAt() time.Time { return u.CreatedAt.Add(Lifetime) }

// FileID returns the ID of the file that the upload becomes.
func (u *Resumable) FileID() string { return idPrefix + strings.TrimPrefix(u.ID, uploadIDPrefix) }

// has reports whether a blob is a part of the upload.
func (u *Resumable) has(blob string) bool {
	for _, p := range u.Parts {
		if p.Blob == blob {
			return true
		}
	}
	return false
}

// uploadIDPrefix begins the ID of every resumable upload. No file has the ID, because it lacks idPrefix.
const uploadIDPrefix = "upload_"

// uploadKey returns the key of an upload: one below the files of the tenant, which the index watches.
func uploadKey(tenant, id string) string { return fileKey(tenant, id) }

// isUploadID reports whether a text can be the ID of an upload.
func isUploadID(id string) bool {
	name, ok := strings.CutPrefix(id, uploadIDPrefix)
	return ok && isID(idPrefix+name)
}

// storedUpload is the value of a resumable upload. Name is encrypted with a key of the upload.
type storedUpload struct {
	Resumable

	EncodedName json.RawMessage `json:"name,omitempty"`
}

// encodeUpload returns the value of an upload.
func encodeUpload(u *Resumable) ([]byte, error) {
	value, err := json.Marshal(storedUpload{*u, u.encodedName})
	if err != nil {
		return nil, fmt.Errorf("files: upload %s: %w", u.ID, err)
	}
	return value, nil
}

// decodeUpload returns an upload from its value, without its name.
func decodeUpload(key string, value []byte) (*Resumable, error) {
	var stored storedUpload
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, fmt.Errorf("files: entry %s: %w", key, err)
	}
	u := &stored.Resumable
	u.encodedName = stored.EncodedName
	return u, nil
}

// CreateUpload begins a resumable upload of size bytes. It uses the tenant, the owner, the name and the
// type of u. Errors: ErrTooLarge, ErrEmpty.
func (s *Store) CreateUpload(ctx context.Context, u Upload, size int64) (*Resumable, error) {
	switch {
	case size > s.maxSize:
		return nil, ErrTooLarge
	case size <= 0:
		return nil, ErrEmpty
	}
	created := &Resumable{Tenant: u.Tenant, ID: uploadIDPrefix + newName(), Owner: u.Owner, Name: u.Name, Type: u.Type, Size: size, CreatedAt: time.Now().UTC()}
	key := uploadKey(u.Tenant, created.ID)
	if u.Name != "" {
		name, err := json.Marshal(u.Name)
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		if created.encodedName, err = s.log.EncryptEntry(ctx, keyName(u.Tenant, created.ID), key, name); err != nil {
			return nil, err
		}
	}
	value, err := encodeUpload(created)
	if err != nil {
		return nil, err
	}
	created.revision, err = s.bucket.Create(ctx, key, value)
	return created, unavailable(err)
}

// FindUpload returns a resumable upload of a tenant. Errors: ErrUnknownUpload.
func (s *Store) FindUpload(ctx context.Context, tenant, id string) (*Resumable, error) {
	if !isUploadID(id) {
		return nil, ErrUnknownUpload
	}
	key := uploadKey(tenant, id)
	value, revision, err := s.log.LastValue(ctx, s.bucket, key)
	if err != nil {
		return nil, unavailable(err)
	}
	if value == nil {
		return nil, ErrUnknownUpload
	}
	u, err := decodeUpload(key, value)
	if err != nil {
		return nil, err
	}
	if time.Now().After(u.ExpiresAt()) {
		return nil, ErrUnknownUpload
	}
	u.revision = revision
	if u.encodedName == nil {
		return u, nil
	}
	name, err := s.log.DecryptEntry(ctx, key, u.encodedName)
	if errors.Is(err, stream.ErrGone) { // it is being deleted
		return nil, ErrUnknownUpload
	}
	if err == nil {
		err = json.Unmarshal(name, &u.Name)
	}
	return u, err
}

// update writes the entry of an upload if no other request has changed it since it was read or written.
// Errors: ErrUploadChanged.
func (s *Store) update(ctx context.Context, u *Resumable) error {
	value, err := encodeUpload(u)
	if err != nil {
		return err
	}
	revision, err := s.bucket.Update(ctx, uploadKey(u.Tenant, u.ID), value, u.revision)
	if stream.IsConflict(err) {
		return ErrUploadChanged
	}
	if err == nil {
		u.revision = revision
	}
	return unavailable(err)
}

// FinishUpload stores the file of an upload whose bytes have all arrived, and removes its parts. A
// repetition stores the same file once. The upload stays until it expires, so that a client that has not
// received the answer learns the file. Concurrent calls of a process wait for the first one, because storing
// a file costs as much as its upload. isNew tells that this call has stored the file. It continues if
// ctx ends, because a large file may take longer than a client waits. Errors: those of Put; a *ThreatError
// has deleted the upload; ErrUnknownUpload if the upload is deleted meanwhile, and then there is no file.
func (s *Store) FinishUpload(ctx context.Context, u *Resumable) (isNew bool, err error) {
	if u.IsStored {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx) // Put has a limit of its own
	finished, err, _ := s.finishing.Do(uploadKey(u.Tenant, u.ID), func() (any, error) {
		current, err := s.FindUpload(ctx, u.Tenant, u.ID)
		if err == nil && !current.IsStored {
			isNew, err = s.finish(ctx, current)
		}
		return current, err
	})
	if current, ok := finished.(*Resumable); ok && current != nil {
		*u = *current
	}
	return isNew, err
}

// finish is FinishUpload for an upload that is not stored, and ctx does not end.
func (s *Store) finish(ctx context.Context, u *Resumable) (isNew bool, err error) {
	body := &partReader{ctx: ctx, store: s, tenant: u.Tenant, rest: u.Parts}
	defer body.close()
	_, err = s.Put(ctx, Upload{Tenant: u.Tenant, Owner: u.Owner, ID: u.FileID(), Name: u.Name, Type: u.Type, Body: body})
	if _, isThreat := errors.AsType[*ThreatError](err); isThreat {
		return false, errors.Join(err, s.DeleteUpload(ctx, u.Tenant, u.ID))
	}
	if err != nil {
		if current, findErr := s.FindUpload(ctx, u.Tenant, u.ID); findErr == nil && current.IsStored { // and its parts are gone
			*u = *current
			return false, nil
		}
		return false, err
	}
	parts := u.Parts
	u.IsStored, u.Parts = true, nil
	if err := s.update(ctx, u); err != nil && !errors.Is(err, ErrUploadChanged) {
		return false, err
	} else if err != nil { // another request has finished or deleted it, with its parts
		return false, s.dropUnlessFinished(ctx, u)
	}
	_ = s.removeParts(ctx, u.Tenant, parts) // else Sweep does: the file is stored
	return true, nil
}

// dropUnlessFinished removes the file of an upload that another request has changed, unless that request
// has finished the upload. DeleteUpload keeps the file of a finished one. Errors: ErrUnknownUpload.
func (s *Store) dropUnlessFinished(ctx context.Context, u *Resumable) error {
	value, _, err := s.log.LastValue(ctx, s.bucket, uploadKey(u.Tenant, u.ID)) // also of an upload that has expired
	if err != nil || value != nil {
		return unavailable(err)
	}
	isUnfinished := func(f *File) bool { return !f.IsKept && len(f.Threads) == 0 }
	return errors.Join(ErrUnknownUpload, s.deleteIf(ctx, u.Tenant, u.FileID(), isUnfinished))
}

// keepFile marks the file of a complete upload that is deleted.
func (s *Store) keepFile(ctx context.Context, u *Resumable) error {
	return s.changeFile(ctx, u.Tenant, u.FileID(), func(f *storedFile) (*storedFile, error) {
		if f != nil {
			f.IsKept = true
		}
		return f, nil
	})
}

// DeleteUpload deletes a resumable upload with its parts. The file of a complete upload stays. It
// succeeds if the upload is unknown.
func (s *Store) DeleteUpload(ctx context.Context, tenant, id string) error {
	if !isUploadID(id) {
		return nil
	}
	key := uploadKey(tenant, id)
	for range maxConflicts {
		value, revision, err := s.log.LastValue(ctx, s.bucket, key)
		if err != nil || value == nil {
			return unavailable(err)
		}
		u, err := decodeUpload(key, value)
		if err != nil {
			return err
		}
		if u.IsStored {
			if err := s.keepFile(ctx, u); err != nil {
				return err
			}
		}
		if err := s.log.DestroyKey(ctx, keyName(tenant, id)); err != nil {
			return err
		}
		if err := errors.Join(s.removeParts(ctx, tenant, u.Parts), s.removeBytes(ctx, tenant, u.Next)); err != nil {
			return err
		}
		err = s.bucket.Purge(ctx, key, jetstream.LastRevision(revision), jetstream.PurgeTTL(markerTTL))
		if !stream.IsConflict(err) {
			return unavailable(err)
		}
	}
	return fmt.Errorf("files: %w: %s is changed all the time", stream.ErrUnavailable, key)
}

// removeParts removes the blobs of parts. Sweep finds what an interruption leaves.
func (s *Store) removeParts(ctx context.Context, tenant string, parts []part) error {
	for _, p := range parts {
		if err := s.removeBlob(ctx, tenant, p.Blob); err != nil {
			return err
		}
	}
	return nil
}
