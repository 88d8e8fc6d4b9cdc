package remote

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

var (
	errSilent   = errors.New("the remote was silent for too long")
	errTooLarge = errors.New("the response is too large")
)

// body reads a response. It is used by one goroutine.
type body struct {
	io.Reader

	left int64 // bytes that may still be read
	// timer ends the request when it fires. It runs only while the reader waits for bytes, so the
	// time that the consumer of the events needs does not count. Any byte counts as life, also that
	// of a comment.
	timer *time.Timer
	limit time.Duration
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	b.timer.Reset(b.limit)
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.timer.Stop()
	b.left -= int64(n)
	return n, err
}

// requestBody is the body of a request. It drops its bytes when they were read, or with Close: the request
// lives as long as its response. The transport may call Close while another goroutine reads.
type requestBody struct {
	mu     sync.Mutex
	unread *bytes.Reader // nil = the bytes were dropped
}

// newRequestBody returns the body of a request with the given bytes.
func newRequestBody(encoded []byte) *requestBody {
	return &requestBody{unread: bytes.NewReader(encoded)}
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread == nil {
		return 0, io.EOF
	}
	n, err := b.unread.Read(p)
	if b.unread.Len() == 0 {
		b.unread = nil
	}
	return n, err
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread = nil
	return nil
}
