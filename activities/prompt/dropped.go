package prompt

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Dropped is a content part that a model is not sent: the value of the event
// perdure.contentDropped.
type Dropped struct {
	MessageID string        `json:"messageId"`
	Part      int           `json:"part"` // its index in the content of the message
	Type      agui.PartType `json:"type"`
	MimeType  string        `json:"mimeType,omitempty"`
	Reason    llm.Unusable  `json:"reason"`
	Provider  string        `json:"provider"`
}

// DroppedFrom finds the parts that a model is not sent, in messages that no model has answered yet:
// each is told with the first model call that would have read it, and not again with every later
// one.
func DroppedFrom(provider, name string, model llm.Model, entries []snapshot.Entry) []Dropped {
	var dropped []Dropped
	reader, _ := model.(llm.MediaReader)
	for _, e := range unanswered(entries) {
		for i, p := range e.Message.Content.Parts() {
			if p.Source == nil {
				continue
			}
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

// unanswered returns the entries after the last answer.
func unanswered(entries []snapshot.Entry) []snapshot.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Message.Role == agui.RoleAssistant {
			return entries[i+1:]
		}
	}
	return entries
}

func roleOf(r agui.Role) llm.Role {
	if r == agui.RoleTool {
		return llm.RoleTool
	}
	return llm.RoleUser // no other message has parts
}
