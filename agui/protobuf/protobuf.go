// Package protobuf is AG-UI's binary wire: events as Protocol Buffers messages, in frames.
//
//	┌────────────────────┬──────────────────────────────────────────┐
//	│ length, 4 bytes,   │ Event { oneof event { … } }              │
//	│ big-endian         │   each arm: BaseEvent and its own fields │
//	└────────────────────┴──────────────────────────────────────────┘
//
// The bytes are those of the reference implementation, @ag-ui/proto 1.0.0, with the members that
// 1.1 added. Every message has one description, used for writing and for reading (events.go,
// messages.go); its numbers are frozen by the specification.
//
// Three things that JSON carries have no place on this wire: members that the protocol does not
// describe, the exact spelling of numbers in open values (they become 64-bit floats), and the
// difference between an empty list and none.
package protobuf

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// MediaType names the wire in Accept and Content-Type, there without parameters.
const MediaType = "application/vnd.ag-ui.event+proto"

// ErrUnknownEvent is for an event that has no number here, to either side: one of another version
// of the protocol. A stream goes on without it, as clients do.
var ErrUnknownEvent = errors.New("protobuf: the event is of another version of the protocol")

// Append appends an event as one message, without a frame. It relies on what agui.Decode and
// agui.Encode check. What clients leave out of an event because nobody knows it (content parts and
// patch operations of other kinds) is not written.
func Append(dst []byte, e agui.Event) ([]byte, error) {
	a, ok := byType[e.EventType()]
	if !ok {
		return dst, fmt.Errorf("%w: %s", ErrUnknownEvent, e.EventType())
	}
	w := &writer{}
	w.message(a.number, true, func(to wire) { a.fields(to, e) })
	if w.err != nil {
		return dst, fmt.Errorf("protobuf: %s: %w", e.EventType(), w.err)
	}
	return w.appendTo(dst), nil
}

// Decode reads one message. Whatever the bytes are, it takes memory in proportion to them. The
// event has passed the checks that agui.Decode makes, so both wires accept the same events.
func Decode(message []byte) (agui.Event, error) {
	r := &reader{segments: [][]byte{message}}
	a, err := r.arm()
	if err != nil {
		return nil, err
	}
	e := a.make()
	r.message(a.number, true, func(from wire) { a.fields(from, e) })
	if r.err != nil {
		return nil, fmt.Errorf("protobuf: %s: %w", e.EventType(), r.err)
	}
	raw, err := agui.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("protobuf: %w", err)
	}
	return agui.Decode(raw)
}

// arm finds out which event an envelope holds: exactly one.
func (r *reader) arm() (arm, error) {
	var found arm
	future := false
	r.each(func(f field) {
		a, known := byNumber[f.number]
		switch {
		case f.kind != protowire.BytesType:
		case !known:
			future = true
		case found.number != 0 && found.number != f.number:
			r.fail(errors.New("more than one event in one message"))
		default:
			found = a
		}
	})
	switch {
	case r.err != nil:
		return arm{}, fmt.Errorf("protobuf: %w", r.err)
	case found.number == 0 && future:
		return arm{}, ErrUnknownEvent
	case found.number == 0:
		return arm{}, errors.New("protobuf: no event in the message")
	}
	return found, nil
}
