package prompt

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Messages turns a conversation into the messages of a request. told is the system message; "" =
// none. Models refuse a conversation with a tool call that has no result, so such calls, of
// cancelled runs, are left out. Tool calls have the provider's own IDs.
func Messages(told string, entries []snapshot.Entry) []llm.Message {
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
	sortResults(messages)
	return messages
}

// sortResults puts the results that follow an answer into the order of the answer's tool calls. In
// the conversation they stand in the order in which the tools finished, because clients have them
// so and a snapshot moves no message. A model must not see an order that depends on timing: it
// would read the same calls differently each time, and the provider's prompt cache would not match
// after a restart.
func sortResults(messages []llm.Message) {
	for i, answer := range messages {
		if len(answer.ToolCalls) < 2 {
			continue
		}
		end := i + 1
		for end < len(messages) && messages[end].Role == llm.RoleTool {
			end++
		}
		places := make(map[string]int, len(answer.ToolCalls))
		for place, call := range answer.ToolCalls {
			places[call.ID] = place
		}
		slices.SortStableFunc(messages[i+1:end], func(a, b llm.Message) int { return cmp.Compare(places[a.ToolCallID], places[b.ToolCallID]) })
	}
}

// thoughtsOf finds the reasoning of each answer. It has messages of its own in the conversation,
// and is a part of the answer for models. Reasoning that a client sent belongs to the next answer.
func thoughtsOf(entries []snapshot.Entry) map[string][]llm.Reasoning {
	thoughts := map[string][]llm.Reasoning{}
	var next []llm.Reasoning
	for _, e := range entries {
		switch {
		case e.Message.Role == agui.RoleReasoning && e.AnswerID != "":
			thoughts[e.AnswerID] = append(thoughts[e.AnswerID], UnsealReasoning(e.Message))
		case e.Message.Role == agui.RoleReasoning && e.Sent != "":
			next = append(next, UnsealReasoning(e.Message))
		case e.Message.Role == agui.RoleAssistant:
			thoughts[e.Message.ID] = append(thoughts[e.Message.ID], next...)
			next = nil
		case e.Message.Role == agui.RoleUser:
			next = nil
		}
	}
	return thoughts
}

// prompter converts the messages of a conversation.
type prompter struct {
	answered map[string]bool            // tool calls
	names    map[string]string          // of tool calls, by ours
	thoughts map[string][]llm.Reasoning // by answer
}

func (p *prompter) message(m agui.Message) (llm.Message, bool) {
	out := llm.Message{Name: m.Name, Parts: Parts(m.Content)}
	switch m.Role {
	case agui.RoleSystem, agui.RoleDeveloper:
		out.Role = llm.RoleSystem
	case agui.RoleUser:
		out.Role = llm.RoleUser
	case agui.RoleTool: // an empty result is a result
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
