package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/agui"
)

// MaxFrame is the maximum size of a frame, in bytes, including its length field. Clients read no
// larger frame.
const MaxFrame = 10 << 20

// prefix is the size of the length field, in bytes.
const prefix = 4

// ErrFrameTooLarge is the error of an event that exceeds a frame.
var ErrFrameTooLarge = errors.New("protobuf: a frame may have at most 10 MiB")

// AppendFrame appends an event as one frame. On an error it returns dst without the event. The
// errors are those of Append, and ErrFrameTooLarge.
func AppendFrame(dst []byte, e agui.Event) ([]byte, error) {
	start := len(dst)
	// The length field is reserved here and set below, when the length is known.
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

// Reader reads the frames of a response. It is not safe for concurrent use, and does not close the
// underlying reader.
type Reader struct {
	r io.Reader
}

// NewReader returns a Reader for r, which should be buffered.
func NewReader(r io.Reader) *Reader { return &Reader{r} }

// Next returns the next event. It returns io.EOF at the end, and io.ErrUnexpectedEOF if the end is
// inside a frame. After ErrUnknownEvent the caller can continue with the next frame.
func (r *Reader) Next() (agui.Event, error) {
	var length [prefix]byte
	if _, err := io.ReadFull(r.r, length[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(length[:]))
	if size > MaxFrame-prefix {
		return nil, ErrFrameTooLarge
	}
	// io.ReadAll allocates for the data that arrives. The length field alone must not allocate
	// memory.
	message, err := io.ReadAll(io.LimitReader(r.r, size))
	switch {
	case err != nil:
		return nil, fmt.Errorf("protobuf: %w", err)
	case int64(len(message)) < size:
		return nil, io.ErrUnexpectedEOF
	}
	return Decode(message)
}
