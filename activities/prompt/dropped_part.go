package prompt

import (
	"fmt"
	"slices"

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
			if p.Source.Type == sourceUnavailable {
				reason = llm.Unusable(p.Source.Value)
			}
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

// sourceUnavailable is the type of a source whose value is the reason why there is none.
const sourceUnavailable agui.SourceType = "unavailable"

// Unavailable returns a source that no model receives, for a reason.
func Unavailable(source agui.PartSource, reason llm.Unusable) *agui.PartSource {
	source.Type, source.Value = sourceUnavailable, string(reason)
	return &source
}

// WithoutUnavailable returns entries without the parts whose sources are unavailable. A text takes the
// place of each, so that its reader knows of it.
func WithoutUnavailable(entries []snapshot.Entry) []snapshot.Entry {
	isUnavailable := func(p agui.ContentPart) bool { return p.Source != nil && p.Source.Type == sourceUnavailable }
	var changed []snapshot.Entry
	for i, e := range entries {
		if e.Message.Content.IsText() || !slices.ContainsFunc(e.Message.Content.Parts(), isUnavailable) {
			continue
		}
		if changed == nil {
			changed = slices.Clone(entries)
		}
		parts := slices.Clone(e.Message.Content.Parts())
		for j, p := range parts {
			if isUnavailable(p) {
				parts[j] = agui.TextPart(fmt.Sprintf("[%s left out: %s]", p.Type, p.Source.Value))
			}
		}
		changed[i].Message.Content = agui.PartsContent(parts)
	}
	if changed == nil {
		return entries
	}
	return changed
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
