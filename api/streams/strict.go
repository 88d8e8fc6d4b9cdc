package streams

import (
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// strict is a transport that refuses events which AG-UI forbids. It is meant for tests: such an
// event is a defect of this project.
type strict struct {
	Transport
	resumed bool
	guard   *agui.Guard // from the first event on
}

// breach is an event that must not be sent.
type breach struct {
	cursor stream.Cursor
	cause  error
}

func (b *breach) Error() string { return fmt.Sprintf("api: event %s: %v", b.cursor, b.cause) }

// Unwrap returns the rule that the event breaks.
func (b *breach) Unwrap() error { return b.cause }

// strictly wraps a transport. A view that starts after a cursor continues with the messages that
// the view before has opened, unless the cursor is at a run's end.
func strictly(to Transport, resumed bool) *strict {
	return &strict{Transport: to, resumed: resumed}
}

// Send sends the frames before the first breach, and returns the breach.
func (s *strict) Send(frames []view.Frame) error {
	for i, f := range frames {
		if err := s.check(f.Event); err != nil {
			if sent := s.Transport.Send(frames[:i]); sent != nil {
				return sent
			}
			return &breach{f.Cursor, err}
		}
	}
	return s.Transport.Send(frames)
}

func (s *strict) check(event []byte) error {
	e, err := agui.Decode(event)
	if err != nil {
		return err
	}
	if s.guard == nil {
		s.guard = new(agui.Guard)
		if s.resumed && e.EventType() != agui.EventRunStarted {
			s.guard = agui.ResumedGuard()
		}
	}
	return s.guard.Check(e)
}
