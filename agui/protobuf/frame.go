package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/agui"
)

// MaxFrame is the most that a frame may have, its length included: clients read no more.
const MaxFrame = 10 << 20

const prefix = 4

// ErrFrameTooLarge is for an event that does not fit into a frame.
var ErrFrameTooLarge = errors.New("protobuf: a frame may have at most 10 MiB")

// AppendFrame appends an event as one frame.
func AppendFrame(dst []byte, e agui.Event) ([]byte, error) {
	start := len(dst)
	framed, err := Append(append(dst, make([]byte, prefix)...), e)
	if err != nil {
		return dst, err
	}
	size := len(framed) - start
	if size > MaxFrame {
		return dst, ErrFrameTooLarge
	}
	binary.BigEndian.PutUint32(framed[start:], uint32(size-prefix)) //nolint:gosec // within MaxFrame
	return framed, nil
}

// Reader reads the frames of a response. It is used by one goroutine.
type Reader struct {
	r io.Reader
}

// NewReader reads frames from r, which should be buffered.
func NewReader(r io.Reader) *Reader { return &Reader{r} }

// Next returns the next event: io.EOF at the end, io.ErrUnexpectedEOF if that is inside a frame.
// After ErrUnknownEvent there may be further ones.
func (r *Reader) Next() (agui.Event, error) {
	var length [prefix]byte
	if _, err := io.ReadFull(r.r, length[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(length[:]))
	if size > MaxFrame-prefix {
		return nil, ErrFrameTooLarge
	}
	// ReadAll grows with what arrives: a length alone must not claim memory.
	message, err := io.ReadAll(io.LimitReader(r.r, size))
	switch {
	case err != nil:
		return nil, fmt.Errorf("protobuf: %w", err)
	case int64(len(message)) < size:
		return nil, io.ErrUnexpectedEOF
	}
	return Decode(message)
}
