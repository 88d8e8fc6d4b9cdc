package view

import "github.com/perdure/perdure/stream"

// shownEvent is an event of an open attempt, and its position in the log.
type shownEvent struct {
	position stream.Position
	event    []byte
}
