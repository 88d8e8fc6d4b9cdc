package files

import (
	"context"
	"errors"
	"io"
)

// Content reads the bytes of a file, at any place. It reads ahead only within the storage. It is not
// safe for concurrent use. The caller closes it.
type Content struct {
	ctx     context.Context
	storage Storage
	blob    string
	key     []byte // nil = the blob is not encrypted
	size    int64

	at   int64 // of the next byte
	open io.ReadCloser
}

// errSeek tells that a place is before the first byte.
var errSeek = errors.New("files: negative offset")

// Seek implements io.Seeker.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	if offset != c.at {
		c.at = offset
		return offset, c.Close()
	}
	return offset, nil
}

// Read implements io.Reader.
func (c *Content) Read(p []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	if c.open == nil {
		var err error
		if c.open, err = openAt(c.ctx, c.storage, c.blob, c.key, c.at); err != nil {
			return 0, err
		}
	}
	n, err := c.open.Read(p)
	c.at += int64(n)
	if errors.Is(err, io.EOF) && c.at < c.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}

// Close implements io.Closer.
func (c *Content) Close() error {
	if c.open == nil {
		return nil
	}
	open := c.open
	c.open = nil
	return open.Close()
}
