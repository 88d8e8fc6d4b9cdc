package activities

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/stream/snapshot"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// customContentDropped names the event that tells clients of a content part which the model is not sent.
const customContentDropped = "perdure.contentDropped"

// maxDropped bounds these events for one model call. The parts beyond it are only counted, in the worker's log.
const maxDropped = 32

// droppedPart is the value of the event.
type droppedPart struct {
	MessageID string        `json:"messageId"`
	Part      int           `json:"part"` // its index in the content of the message
	Type      agui.PartType `json:"type"`
	MimeType  string        `json:"mimeType,omitempty"`
	Reason    llm.Unusable  `json:"reason"`
	Provider  string        `json:"provider"`
}

// droppedParts finds the parts that a model is not sent, in messages that no model has answered yet: each is told with
// the first model call that would have read it, and not again with every later one.
func droppedParts(provider, name string, model llm.Model, entries []snapshot.Entry) []droppedPart {
	var dropped []droppedPart
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
				dropped = append(dropped, droppedPart{e.Message.ID, i, p.Type, p.Source.MimeType, reason, provider})
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

// tellDropped tells clients which parts the model is not sent.
func (n *narrator) tellDropped(ctx context.Context, dropped []droppedPart) error {
	if len(dropped) == 0 {
		return nil
	}
	activity.GetLogger(ctx).Warn("the model is not sent all content parts", "dropped", len(dropped), "provider", dropped[0].Provider, "reason", dropped[0].Reason)
	var events []agui.Event
	for _, d := range dropped[:min(len(dropped), maxDropped)] {
		value, err := json.Marshal(d)
		if err != nil { // cannot be: all of it is text and numbers
			return err
		}
		events = append(events, &agui.Custom{Name: customContentDropped, Value: value})
	}
	return n.emit(ctx, events...)
}
