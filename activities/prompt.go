package activities

import (
	"cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// prompt turns a conversation into what a model is sent: instructions first. Models refuse a
// conversation in which a tool call has no result, so calls without one (of a cancelled run) are
// left out. They are told their own names of tool calls.
func prompt(instructions string, entries []stream.Entry) []llm.Message {
	var messages []llm.Message
	if instructions != "" {
		messages = append(messages, llm.Message{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: instructions}}})
	}
	answered := map[string]bool{}
	names := map[string]string{}
	for _, e := range entries {
		if e.Message.Role == agui.RoleTool {
			answered[e.Message.ToolCallID] = true
		}
		for ours, theirs := range e.ProviderIDs {
			names[ours] = theirs
		}
	}
	for _, e := range entries {
		if m, ok := promptMessage(e.Message, answered, names); ok {
			messages = append(messages, m)
		}
	}
	return messages
}

func promptMessage(m agui.Message, answered map[string]bool, names map[string]string) (llm.Message, bool) {
	switch m.Role {
	case agui.RoleSystem, agui.RoleDeveloper:
		return llm.Message{Role: llm.RoleSystem, Name: m.Name, Parts: parts(m.Content)}, true
	case agui.RoleUser:
		return llm.Message{Role: llm.RoleUser, Name: m.Name, Parts: parts(m.Content)}, true
	case agui.RoleTool:
		id := m.ToolCallID
		return llm.Message{Role: llm.RoleTool, ToolCallID: cmp.Or(names[id], id), Parts: parts(m.Content)}, true
	case agui.RoleAssistant:
		out := llm.Message{Role: llm.RoleAssistant, Name: m.Name, Parts: parts(m.Content)}
		for _, c := range m.ToolCalls {
			if answered[c.ID] {
				out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: cmp.Or(names[c.ID], c.ID), Name: c.Name, Arguments: c.Arguments})
			}
		}
		return out, len(out.Parts) > 0 || len(out.ToolCalls) > 0
	}
	return llm.Message{}, false // activities are for people; reasoning belongs to whoever thought it
}

// parts turns content into what models take. A part that none could use (an opaque file handle) is
// left out: it must not fail the run.
func parts(c agui.Content) []llm.Part {
	var parts []llm.Part
	for _, p := range c.Parts() {
		if p.Type == agui.PartText {
			parts = append(parts, llm.Text{Text: p.Text})
			continue
		}
		if p.Source == nil {
			continue
		}
		media := llm.Media{Kind: llm.MediaKind(p.Type), MIME: p.Source.MimeType}
		switch p.Source.Type {
		case agui.SourceData:
			media.Data = p.Source.Value
		case agui.SourceURL:
			media.URL = p.Source.Value
		default:
			continue
		}
		parts = append(parts, media)
	}
	return parts
}
