package files

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// part is a part of a resumable upload: a blob.
type part struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
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
				return 0, partError(err)
			}
			r.rest = r.rest[1:]
		}
		n, err := r.open.Read(p)
		switch {
		case errors.Is(err, io.EOF):
			r.close()
		case err != nil:
			return n, partError(err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// partError returns the failure to read a part. It does not wrap err: a part that is missing is no unknown
// file, and one that is too short no request that broke off.
func partError(err error) error {
	return fmt.Errorf("files: %w: part: %v", stream.ErrUnavailable, err) //nolint:errorlint // see above
}

// close closes the part that is open.
func (r *partReader) close() {
	if r.open != nil {
		_ = r.open.Close() // it was read
		r.open = nil
	}
}
