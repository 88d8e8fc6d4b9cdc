package prompt

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// Private returns a message that only the agent is told.
func Private(id, text string) snapshot.Entry {
	return snapshot.Entry{Message: agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}}
}
