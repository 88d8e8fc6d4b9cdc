package streams

import (
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// strictTransport is a transport that ends its stream before an event that AG-UI forbids. Such an
// event is a defect of this project, so only tests use it. One goroutine uses it.
type strictTransport struct {
	Transport
	resumed bool
	guard   *agui.Guard // nil before the first event, which decides how the guard starts
}

// violation is the error about an event that breaks a rule of AG-UI. The event was not sent.
type violation struct {
	cursor stream.Cursor
	cause  error
}

func (b *violation) Error() string { return fmt.Sprintf("api: event %s: %v", b.cursor, b.cause) }

// Unwrap returns the rule that the event breaks.
func (b *violation) Unwrap() error { return b.cause }

// newStrict wraps a transport. resumed reports that the view starts after a cursor: then messages
// and tool calls may be open that the events before the cursor began, unless the first event is a
// RUN_STARTED.
func newStrict(transport Transport, resumed bool) *strictTransport {
	return &strictTransport{Transport: transport, resumed: resumed}
}

// Send sends the frames before the first violation, and returns a *violation for it. The frames
// after it are dropped.
func (s *strictTransport) Send(frames []view.Frame) error {
	for i, f := range frames {
		if err := s.check(f.Event); err != nil {
			if sendErr := s.Transport.Send(frames[:i]); sendErr != nil {
				return sendErr
			}
			return &violation{f.Cursor, err}
		}
	}
	return s.Transport.Send(frames)
}

// check verifies the next event against the rules. It returns the broken rule, or nil.
func (s *strictTransport) check(event []byte) error {
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
