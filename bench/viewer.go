package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// viewer is one client of an event stream, on one connection after another. It keeps counts and a
// checksum of the received events, so that thousands of viewers can be compared.
type viewer struct {
	// ask is the request that starts the stream, or continues after an event ID.
	ask  func(after []byte) []byte
	scan scan

	fd       int
	rest     []byte // of an incomplete event
	answered bool   // the response has started and is successful
	narrow   bool   // the viewer will stop reading for some time
	cut      bool   // the connection ended before the run did
	last     []byte // the last event's id
	events   int
	sum      uint32 // of all events and ids, in order
}

var checksums = crc32.MakeTable(crc32.Castagnoli) // in hardware

// take reads received bytes. Events are separated by blank lines. HTTP's own lines, which end with
// CR LF, may precede an event: a chunk never begins within a line.
func (v *viewer) take(data []byte, at int64, seen func(*viewer, int64)) error {
	if !v.answered {
		if !bytes.HasPrefix(data, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("%w: %.500s", errRun, data)
		}
		v.answered = true
	}
	if len(v.rest) > 0 {
		data = append(v.rest, data...)
	}
	for {
		end := bytes.Index(data, []byte("\n\n"))
		if end < 0 {
			break
		}
		events := v.events
		if err := v.event(data[:end+1], at); err != nil {
			return fmt.Errorf("event %d: %w", v.events, err)
		}
		if v.events > events && seen != nil {
			seen(v, at)
		}
		data = data[end+2:]
	}
	v.rest = append(v.rest[:0], data...)
	return nil
}

// event checks the lines of an event, and adds them to the checksum.
func (v *viewer) event(text []byte, at int64) error {
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\r\n")) || line[0] == ':' {
			continue
		}
		v.sum = crc32.Update(v.sum, checksums, line)
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			if bytes.Compare(id, v.last) <= 0 {
				return fmt.Errorf("%w: id %q follows %q", errRun, id, v.last)
			}
			v.last = append(v.last[:0], id...)
			continue
		}
		if err := v.scan.line(line, at); err != nil {
			return err
		}
		v.events++
	}
	return nil
}

// closed handles the end of the connection.
func (v *viewer) closed() {
	v.rest, v.answered, v.cut = v.rest[:0], false, !v.scan.ended
}

// same describes how another viewer of the run differs from this one.
func (v *viewer) same(o *viewer) error {
	if v.events != o.events || v.sum != o.sum || !bytes.Equal(v.last, o.last) {
		return fmt.Errorf("%w: one viewer had %d events up to %s (sum %x), another %d up to %s (sum %x)",
			errRun, v.events, bytes.TrimSpace(v.last), v.sum, o.events, bytes.TrimSpace(o.last), o.sum)
	}
	return errors.Join(v.scan.check(), o.scan.check())
}
