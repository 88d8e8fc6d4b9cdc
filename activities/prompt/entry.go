package prompt

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// Private returns a user message that is part of the request only: a task, a prompt, a summary or a
// note about what is left out. The conversation does not have it, and no client sees it.
func Private(id, text string) snapshot.Entry {
	return snapshot.Entry{Message: agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}}
}
