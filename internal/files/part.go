package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/perdure/perdure/stream"
)

// maxParts bounds the parts of a resumable upload: its entry has all of them. An upload that does not
// break off has at most half as many.
const maxParts = 1_000

// minPartBytes is the least size at which a part ends while bytes arrive. What a process loses that is
// killed is less than a part.
const minPartBytes = 8 << 20

// partBytes returns the size at which a part of a file ends.
func partBytes(size int64) int64 { return max(minPartBytes, size/(maxParts/2)+1) }

// Append adds the bytes of r to an upload, from its offset on, until the upload is complete or r ends. It
// keeps what has arrived if r fails or ctx ends, and returns the number of these bytes with the error.
//
// The newest call for an upload has it: the next part of an earlier call, also one in another process,
// is refused with ErrUploadChanged and dropped. Other errors: ErrManyParts, those of r.
func (s *Store) Append(ctx context.Context, u *Resumable, r io.Reader) (n int64, err error) {
	if u.Offset() == u.Size {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, UploadTime)
	defer cancel()
	late, stop := lingering(ctx)
	defer stop()
	if err := s.update(late, u); err != nil { // takes the upload from an earlier call
		return 0, err
	}
	body := &arriving{ctx: ctx, r: r}
	buffered := bufio.NewReader(body)
	for u.Offset() < u.Size {
		if len(u.Parts) >= maxParts {
			return n, ErrManyParts
		}
		if _, err := buffered.Peek(1); err != nil {
			break // nothing more arrives
		}
		size, err := s.appendPart(late, u, io.LimitReader(buffered, min(partBytes(u.Size), u.Size-u.Offset())))
		if err != nil {
			return n, err
		}
		n += size
	}
	return n, body.err
}

// appendPart adds the bytes of r to an upload as one part.
func (s *Store) appendPart(ctx context.Context, u *Resumable, r io.Reader) (int64, error) {
	blob := newName()
	key, stored, err := newKey(ctx, s.log, u.Tenant, blob)
	if err != nil {
		return 0, err
	}
	if err := s.putBlob(ctx, blob, storedBlob{Tenant: u.Tenant, CreatedAt: time.Now().UTC(), Key: stored, Upload: u.ID}); err != nil {
		return 0, err
	}
	body := &measured{r: r, left: s.maxSize}
	encrypted, err := encrypting(body, key)
	if err == nil {
		err = s.storage.Write(ctx, blob, encrypted)
	}
	if err == nil {
		before := u.Parts
		u.Parts = append(slices.Clip(before), part{blob, body.size})
		if err = s.update(ctx, u); err == nil {
			return body.size, nil
		}
		if u.Parts = before; !errors.Is(err, ErrUploadChanged) {
			return 0, err // the part may have been added: Sweep decides
		}
	}
	_ = s.removeBlob(ctx, u.Tenant, blob) // else Sweep does
	return 0, err
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

// partReader reads the parts of an upload one after the other.
type partReader struct {
	ctx    context.Context
	store  *Store
	tenant string
	rest   []part // that are not opened
	open   *Content
}

// Read implements io.Reader.
func (r *partReader) Read(p []byte) (int, error) {
	for {
		if r.open == nil {
			if len(r.rest) == 0 {
				return 0, io.EOF
			}
			var err error
			if r.open, err = r.store.openBlob(r.ctx, r.tenant, r.rest[0].Blob, r.rest[0].Size); err != nil {
				return 0, err
			}
			r.rest = r.rest[1:]
		}
		n, err := r.open.Read(p)
		switch {
		case errors.Is(err, io.EOF):
			r.close()
		case err != nil: // not wrapped: the end of a part that is too short is no end of a request
			return n, fmt.Errorf("files: %w: part: %v", stream.ErrUnavailable, err) //nolint:errorlint // see above
		}
		if n > 0 {
			return n, nil
		}
	}
}

// close closes the part that is open.
func (r *partReader) close() {
	if r.open != nil {
		_ = r.open.Close() // it was read
		r.open = nil
	}
}
