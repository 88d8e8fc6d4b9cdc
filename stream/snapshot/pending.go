package snapshot

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Pending is an activity of an open attempt. It is not part of the conversation yet, but readers
// have it at its place. For a message of a subagent that is not finished it is a placeholder,
// without a role and content. Lane and Writer name the attempt.
type Pending struct {
	// At is the number of entries of the conversation before it.
	At      int          `json:"at"`
	Lane    stream.Lane  `json:"lane"`
	Writer  string       `json:"writer"`
	Message agui.Message `json:"message"`
}

// isPlaceholder reports whether a message stands only for the place of another one: it has no role.
func isPlaceholder(m agui.Message) bool { return m.Role == "" }
