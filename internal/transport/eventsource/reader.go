// Package eventsource reads server-sent events (HTML, section 9.2), within a bound for each event.
package eventsource

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// TooLargeError reports a frame that exceeds the bound of its Reader.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("eventsource: one event has more than %d bytes", e.Limit)
}

// Frame is a server-sent event that has data. It does not alias the stream.
type Frame struct {
	ID   string // "" = the frame has none
	Data []byte
}

// Reader parses a stream. It returns complete frames only: common SSE libraries return the frame
// that the end of a connection has cut as if it were complete. It is used by one goroutine.
type Reader struct {
	lines *bufio.Reader
	limit int // bytes of a frame
	cut   []byte
}

// NewReader returns a parser for one connection. limit bounds each frame, in bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// Next returns the next frame. It fails with io.EOF at the end of the stream, even within a frame,
// and with a *TooLargeError.
func (s *Reader) Next() (f Frame, err error) {
	room := s.limit
	for {
		line, err := s.line(room)
		if err != nil {
			f.add(line)
			s.cut = f.Data
			return Frame{}, err
		}
		if len(line) == 0 {
			if f.Data != nil {
				return f, nil
			}
			f, room = Frame{}, s.limit
			continue
		}
		room -= len(line)
		f.add(line)
	}
}

// add adds the field of a line.
func (f *Frame) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.ID = string(value)
	case "data":
		if f.Data == nil {
			f.Data = []byte{} // data without a value are data
		} else {
			f.Data = append(f.Data, '\n')
		}
		f.Data = append(f.Data, value...)
	}
}

// Cut returns the data of the frame in which Next has failed. The data are complete if the server
// has forgotten the empty line at the end of its stream, and incomplete if the connection was lost.
func (s *Reader) Cut() []byte { return s.cut }

// line returns the next line without its end: LF, or CR LF of some proxies. The line is valid until
// the next call. room bounds its length. With io.EOF it returns the beginning of a line.
func (s *Reader) line(room int) ([]byte, error) {
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
			return append(whole, part...), err
		case whole != nil:
			part = append(whole, part...)
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
}
