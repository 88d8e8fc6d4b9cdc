package prompt

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Dropped is a content part that a model does not receive. It is the value of the event
// perdure.contentDropped, so its JSON is part of the API.
type Dropped struct {
	MessageID string `json:"messageId"`
	// Part is the index of the part in the content of the message.
	Part     int           `json:"part"`
	Type     agui.PartType `json:"type"`
	MimeType string        `json:"mimeType,omitempty"`
	Reason   llm.Unusable  `json:"reason"`
	Provider string        `json:"provider"`
}

// DroppedFrom returns the parts that a model will not receive, of the messages after the last
// answer. Each part is reported with the first model call that would read it, and not again in
// every later turn. name is the model without its provider. A model that is not a llm.MediaReader
// takes all media that have a usable source.
func DroppedFrom(provider, name string, model llm.Model, entries []snapshot.Entry) []Dropped {
	var dropped []Dropped
	reader, _ := model.(llm.MediaReader)
	for _, e := range unanswered(entries) {
		for i, p := range e.Message.Content.Parts() {
			if p.Source == nil {
				continue
			}
			// A source that is neither data nor a URL is of no use to any model.
			reason := llm.UnusableSource
			if media, ok := mediaOf(p); ok {
				reason = ""
				if reader != nil {
					reason = reader.Unusable(name, roleOf(e.Message.Role), media)
				}
			}
			if reason != "" {
				dropped = append(dropped, Dropped{e.Message.ID, i, p.Type, p.Source.MimeType, reason, provider})
			}
		}
	}
	return dropped
}

// unanswered returns the entries after the last message of an assistant: those that no model has
// received yet.
func unanswered(entries []snapshot.Entry) []snapshot.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Message.Role == agui.RoleAssistant {
			return entries[i+1:]
		}
	}
	return entries
}

// roleOf returns the role in the request of a message with media: tool results and user messages
// may have some.
func roleOf(r agui.Role) llm.Role {
	if r == agui.RoleTool {
		return llm.RoleTool
	}
	return llm.RoleUser // no other message has parts
}
