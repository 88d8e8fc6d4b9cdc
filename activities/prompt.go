package activities

import (
	"cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// prompt turns a conversation into what a model is sent: what it is told first, then the messages.
// Models refuse a conversation in which a tool call has no result, so calls without one (of a
// cancelled run) are left out. They are told their own names of tool calls.
func prompt(told string, entries []stream.Entry) []llm.Message {
	p := prompter{answered: map[string]bool{}, names: map[string]string{}, thoughts: thoughtsOf(entries)}
	var messages []llm.Message
	if told != "" {
		messages = append(messages, llm.Message{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: told}}})
	}
	for _, e := range entries {
		if e.Message.Role == agui.RoleTool {
			p.answered[e.Message.ToolCallID] = true
		}
		for ours, theirs := range e.ProviderIDs {
			p.names[ours] = theirs
		}
	}
	for _, e := range entries {
		if m, ok := p.message(e.Message); ok {
			messages = append(messages, m)
		}
	}
	return messages
}

// thoughtsOf finds the reasoning of each answer. In the conversation it has messages of its own; for
// models it is a part of the answer. Of reasoning that a client sent nobody knows whose it is: it is
// taken for the next answer's.
func thoughtsOf(entries []stream.Entry) map[string][]llm.Reasoning {
	thoughts := map[string][]llm.Reasoning{}
	var next []llm.Reasoning
	for _, e := range entries {
		switch {
		case e.Message.Role == agui.RoleReasoning && e.AnswerID != "":
			thoughts[e.AnswerID] = append(thoughts[e.AnswerID], unsealThought(e.Message))
		case e.Message.Role == agui.RoleReasoning && e.Sent != "":
			next = append(next, unsealThought(e.Message))
		case e.Message.Role == agui.RoleAssistant:
			thoughts[e.Message.ID] = append(thoughts[e.Message.ID], next...)
			next = nil
		case e.Message.Role == agui.RoleUser:
			next = nil
		}
	}
	return thoughts
}

type prompter struct {
	answered map[string]bool            // tool calls
	names    map[string]string          // of tool calls, by ours
	thoughts map[string][]llm.Reasoning // by answer
}

func (p *prompter) message(m agui.Message) (llm.Message, bool) {
	out := llm.Message{Name: m.Name, Parts: parts(m.Content)}
	switch m.Role {
	case agui.RoleSystem, agui.RoleDeveloper:
		out.Role = llm.RoleSystem
	case agui.RoleUser:
		out.Role = llm.RoleUser
	case agui.RoleTool: // answers its call even if it says nothing
		out.Role, out.ToolCallID = llm.RoleTool, cmp.Or(p.names[m.ToolCallID], m.ToolCallID)
		out.IsError = m.Error != ""
		return out, true
	case agui.RoleAssistant:
		out.Role, out.Reasoning = llm.RoleAssistant, p.thoughts[m.ID]
		for _, c := range m.ToolCalls {
			if p.answered[c.ID] {
				out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: cmp.Or(p.names[c.ID], c.ID), Name: c.Name, Arguments: c.Arguments})
			}
		}
	default:
		return out, false // activities are for people
	}
	return out, len(out.Parts) > 0 || len(out.ToolCalls) > 0
}
