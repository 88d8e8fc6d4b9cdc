package api

import (
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// strict is a transport that sends no event which AG-UI forbids. It is for tests: what it refuses is
// a mistake of ours.
type strict struct {
	transport
	guard *agui.Guard
}

// breach is an event that must not be sent.
type breach struct {
	cursor stream.Cursor
	cause  error
}

func (b *breach) Error() string { return fmt.Sprintf("api: event %s: %v", b.cursor, b.cause) }

// Unwrap returns what is wrong with the event.
func (b *breach) Unwrap() error { return b.cause }

// strictly wraps a transport. A view that starts behind a cursor goes on with what an earlier one
// has opened.
func strictly(to transport, resumed bool) strict {
	if resumed {
		return strict{to, agui.ResumedGuard()}
	}
	return strict{to, new(agui.Guard)}
}

// Send hands over the frames before the first breach, and returns that.
func (s strict) Send(frames []stream.Frame) error {
	for i, f := range frames {
		if err := s.check(f.Event); err != nil {
			if sent := s.transport.Send(frames[:i]); sent != nil {
				return sent
			}
			return &breach{f.Cursor, err}
		}
	}
	return s.transport.Send(frames)
}

func (s strict) check(event []byte) error {
	e, err := agui.Decode(event)
	if err != nil {
		return err
	}
	return s.guard.Check(e)
}
