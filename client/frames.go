package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// TooLargeError reports a response, or a frame of a stream, that is larger than the client accepts.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("client: the server sent more than %d bytes in one response or event", e.Limit)
}

// FrameError reports a frame of a stream that this version of the client cannot decode.
type FrameError struct {
	Err error
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("client: an event is not valid: %v", e.Err)
}

func (e *FrameError) Unwrap() error { return e.Err }

// frame is a server-sent event that has data.
type frame struct {
	id   string
	data []byte
}

// frames parses a stream of server-sent events (HTML, section 9.2). It drops an incomplete frame at
// the end of a connection: after a reconnect the server sends it again. Common SSE libraries return
// such a frame with its ID as if it were complete.
type frames struct {
	lines *bufio.Reader
	limit int // bytes of a frame
}

// newFrames returns a parser for one connection. limit bounds each frame, in bytes.
func newFrames(r io.Reader, limit int) *frames {
	return &frames{lines: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next frame. It fails with io.EOF at the end of the connection, even within a
// frame, and with a *TooLargeError.
func (s *frames) next() (f frame, err error) {
	room := s.limit
	hasData := false
	for {
		line, err := s.line(room)
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 {
			if hasData {
				return f, nil
			}
			f, room = frame{}, s.limit
			continue
		}
		room -= len(line)
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			f.id = string(value)
		case "data":
			if hasData {
				f.data = append(f.data, '\n')
			}
			f.data = append(f.data, value...)
			hasData = true
		}
	}
}

// line returns the next line without its end: LF, or CR LF of some proxies. The line is valid until
// the next call. room bounds its length.
func (s *frames) line(room int) ([]byte, error) {
	var whole []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		if len(whole)+len(part) > room {
			return nil, &TooLargeError{s.limit}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			whole = append(whole, part...)
			continue
		case err != nil:
			return nil, err
		case whole != nil:
			part = append(whole, part...)
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
}
