package narration

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agui"
)

// toolCall is a tool call that the model writes. id is the thread's, providerID the provider's,
// which it wants back in later requests.
type toolCall struct {
	// index is the provider's: it need not begin at 0, nor come in order.
	index                int
	id, providerID, name string
	arguments            strings.Builder
	// predicted are the members of the state that follow the arguments; nil = none. followed is how
	// many bytes of the arguments the last follow has read.
	predicted []*predicted
	followed  int
}

// message returns the call as a message has it.
func (c *toolCall) message() agui.ToolCall {
	return agui.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()}
}

// ShowCall returns the events that show a complete tool call of a message.
func ShowCall(call agui.ToolCall, messageID string) []agui.Event {
	return []agui.Event{
		&agui.ToolCallStart{ToolCallID: call.ID, ToolCallName: call.Name, ParentMessageID: messageID},
		&agui.ToolCallArgs{ToolCallID: call.ID, Delta: call.Arguments},
		&agui.ToolCallEnd{ToolCallID: call.ID},
	}
}

// predicted is a member of the state that follows an argument of one call. key is its name, path
// its JSON pointer. last is the value that was emitted last, length its length in bytes; 0 = none.
type predicted struct {
	argument, key, path string
	length              int
	last                json.RawMessage
}
