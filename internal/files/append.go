package files

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

// Append adds the bytes of r to an upload, from its offset on, until the upload is complete or r ends. It
// keeps what has arrived if r fails or ctx ends, and returns the number of these bytes with the error.
//
// The newest call for an upload has it: the next part of an earlier call, also one in another process,
// is refused with ErrUploadChanged and dropped. If r has more bytes than the upload lacks, Append drops the
// last part and returns ErrManyBytes, so that the upload stays incomplete. Other errors: ErrManyParts, those of r.
func (s *Store) Append(ctx context.Context, u *Resumable, r io.Reader) (n int64, err error) {
	if u.Offset() == u.Size {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, UploadTime)
	defer cancel()
	late, stop := lingering(ctx)
	defer stop()
	previous := u.Next
	u.Next = newName()
	if err := s.update(late, u); err != nil { // takes the upload from an earlier call
		return 0, err
	}
	_ = s.removeBytes(late, u.Tenant, previous) // else Sweep does
	body := &arriving{ctx: ctx, r: r}
	buffered := bufio.NewReader(body)
	for u.Offset() < u.Size {
		if len(u.Parts) >= maxParts {
			return n, ErrManyParts
		}
		if _, err := buffered.Peek(1); err != nil {
			break // nothing more arrives
		}
		size, err := s.appendPart(late, u, buffered)
		if err != nil {
			return n, err
		}
		n += size
	}
	return n, body.err
}

// appendPart adds bytes of r to an upload as one part, in the blob that the entry of the upload names.
func (s *Store) appendPart(ctx context.Context, u *Resumable, r *bufio.Reader) (int64, error) {
	blob := u.Next
	key, stored, err := newKey(ctx, s.log, u.Tenant, blob)
	if err != nil {
		return 0, err
	}
	if err := s.putBlob(ctx, blob, storedBlob{Tenant: u.Tenant, CreatedAt: time.Now().UTC(), Key: stored, Upload: u.ID}); err != nil {
		return 0, err
	}
	missing := u.Size - u.Offset()
	body := &measured{r: io.LimitReader(r, min(partBytes(u.Size), missing)), left: s.maxSize}
	encrypted, err := encrypting(body, key)
	if err == nil {
		err = s.storage.Write(ctx, blob, encrypted)
	}
	if err == nil && body.size == missing {
		err = checkEnd(r)
	}
	if err == nil {
		added := *u
		added.Parts, added.Next = append(slices.Clip(u.Parts), part{blob, body.size}), ""
		if added.Offset() < u.Size {
			added.Next = newName()
		}
		if err = s.update(ctx, &added); err == nil {
			*u = added
			return body.size, nil
		}
		if !errors.Is(err, ErrUploadChanged) {
			return 0, err // the part may have been added: Sweep decides
		}
	}
	_ = s.removeBlob(ctx, u.Tenant, blob) // else Sweep does
	return 0, err
}

// checkEnd returns ErrManyBytes if r has a further byte. It waits for the end of r.
func checkEnd(r *bufio.Reader) error {
	if _, err := r.Peek(1); err == nil {
		return ErrManyBytes
	}
	return nil // a failure of r is in arriving
}

// arriving reads the body of a request. It ends when the body fails or ctx ends, and keeps the error, so
// that a storage keeps what has arrived.
type arriving struct {
	ctx context.Context
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	if a.err == nil && a.ctx.Err() != nil {
		a.err = context.Cause(a.ctx)
	}
	if a.err != nil {
		return 0, io.EOF
	}
	n, err := a.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.err, err = err, nil
	}
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}

// lingering returns a context that ends cleanupTime after another one, so that what has arrived can be
// stored. The caller calls stop.
func lingering(ctx context.Context) (late context.Context, stop context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(cleanupTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-late.Done():
		}
	})
	return late, func() { release(); cancel() }
}
