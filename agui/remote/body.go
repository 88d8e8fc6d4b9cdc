package remote

import (
	"errors"
	"io"
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
