package protobuf

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// MediaType is the media type of the encoding in Accept and Content-Type, without parameters.
const MediaType = "application/vnd.ag-ui.event+proto"

// ErrUnknownEvent is the error of an event that has no field number here, in either direction: it
// belongs to another version of the protocol. A stream continues without the event, as in clients.
var ErrUnknownEvent = errors.New("protobuf: the event is of another version of the protocol")

// Append appends an event as one message, without a frame. The event must be valid for agui.Encode.
// Append omits what clients ignore because they do not know it: content parts and patch operations
// of unknown types. On an error it returns dst without the event.
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

// Decode decodes one message. Its memory use is proportional to the length of the message, whatever
// the content. The event passes the checks of agui.Decode, so both encodings accept the same
// events. The error is ErrUnknownEvent for an event of another version, which a caller can skip.
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
	// The round trip through JSON applies the checks of the JSON decoder to the event.
	raw, err := agui.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("protobuf: %w", err)
	}
	return agui.Decode(raw)
}

// arm returns the arm of the only event in an envelope. It fails for none and for several, and
// returns ErrUnknownEvent if the only one has an unknown number.
func (r *reader) arm() (arm, error) {
	var found arm
	future := false
	r.each(func(f field) {
		a, known := byNumber[f.number]
		switch {
		case f.kind != protowire.BytesType: // skipped, like an unknown field
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
