package snapshot

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Pending is an activity of an open attempt. It is not part of the conversation yet, but readers
// have it at its place. For a message of a subagent it is a placeholder.
type Pending struct {
	// At is how many entries of the conversation stand before it.
	At      int          `json:"at"`
	Lane    stream.Lane  `json:"lane"`
	Writer  string       `json:"writer"`
	Message agui.Message `json:"message"`
}

// isPlaceholder reports whether a message stands only for the place of another one: it has no role.
func isPlaceholder(m agui.Message) bool { return m.Role == "" }
