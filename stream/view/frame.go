package view

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Frame is one event for one reader.
type Frame struct {
	Type   agui.EventType
	Event  []byte        // exact JSON, without a line feed
	Cursor stream.Cursor // zero inside a prelude: a reader that is cut there joins again
}
