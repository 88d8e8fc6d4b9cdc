package view

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Frame is one event as a reader is shown it.
type Frame struct {
	Type   agui.EventType
	Event  []byte        // exact JSON, without a line feed
	Cursor stream.Cursor // zero inside a prelude: whoever is cut there joins again
}
