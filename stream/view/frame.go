package view

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Frame is one AG-UI event for one reader, in the reader's protocol generation.
type Frame struct {
	Type   agui.EventType
	Event  []byte        // exact JSON, without a line feed
	Cursor stream.Cursor // after the event; zero in a prelude but for its last event: a client cut there joins again
}
