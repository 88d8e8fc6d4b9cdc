package prompt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Messages returns a conversation as the messages of a request. systemText is the system message;
// "" = none. It leaves out what a provider would refuse or no model should read: tool calls without
// a result, which the client has abandoned, results without a call before them, as remote agents send
// them for calls that they do not show, activities, and messages without content. Tool calls have the
// provider's own IDs. The same entries give the same messages, byte for byte, so that the
// provider's prompt cache matches.
func Messages(systemText string, entries []snapshot.Entry) []llm.Message {
	p := prompter{hasResult: map[string]bool{}, isCalled: map[string]bool{}, providerIDs: map[string]string{}, reasoning: reasoningByAnswer(entries)}
	var messages []llm.Message
	if systemText != "" {
		messages = append(messages, llm.Message{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: systemText}}})
	}
	// Results and provider IDs come after the calls that they belong to, so they are collected
	// first.
	for _, e := range entries {
		if e.Message.Role == agui.RoleTool {
			p.hasResult[e.Message.ToolCallID] = true
		}
		for id, providerID := range e.ProviderIDs {
			p.providerIDs[id] = providerID
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

// sortResults puts the results that follow an answer into the order of the answer's tool calls. The
// conversation has them in the order in which the tools finished, because clients have them in that
// order and a snapshot moves no message. A model must not see an order that depends on timing: it
// would read the same calls differently each time, and the provider's prompt cache would not match.
func sortResults(messages []llm.Message) {
	for i, answer := range messages {
		if len(answer.ToolCalls) < 2 {
			continue
		}
		end := i + 1
		for end < len(messages) && messages[end].Role == llm.RoleTool {
			end++
		}
		indexes := make(map[string]int, len(answer.ToolCalls))
		for index, call := range answer.ToolCalls {
			indexes[call.ID] = index
		}
		slices.SortStableFunc(messages[i+1:end], func(a, b llm.Message) int { return cmp.Compare(indexes[a.ToolCallID], indexes[b.ToolCallID]) })
	}
}

// reasoningByAnswer returns the reasoning of each answer, by the ID of the answer. In the
// conversation, reasoning has messages of its own; for models it is a part of the answer. Reasoning
// that a client sent has no AnswerID and belongs to the next answer, unless a user message comes
// before that.
func reasoningByAnswer(entries []snapshot.Entry) map[string][]llm.Reasoning {
	blocks := map[string][]llm.Reasoning{}
	var unclaimed []llm.Reasoning
	for _, e := range entries {
		switch {
		case e.Message.Role == agui.RoleReasoning && e.AnswerID != "":
			blocks[e.AnswerID] = append(blocks[e.AnswerID], UnsealReasoning(e.Message))
		case e.Message.Role == agui.RoleReasoning && e.Sent != "":
			unclaimed = append(unclaimed, UnsealReasoning(e.Message))
		case e.Message.Role == agui.RoleAssistant:
			blocks[e.Message.ID] = append(blocks[e.Message.ID], unclaimed...)
			// The client's reasoning is for the first answer after it.
			unclaimed = nil
		case e.Message.Role == agui.RoleUser:
			unclaimed = nil
		}
	}
	return blocks
}

// prompter converts the messages of one conversation. hasResult are the IDs of the tool calls with
// a result, isCalled those of the calls in the messages so far, providerIDs the provider's IDs of tool
// calls by the thread's, reasoning the reasoning by answer.
type prompter struct {
	hasResult   map[string]bool
	isCalled    map[string]bool
	providerIDs map[string]string
	reasoning   map[string][]llm.Reasoning
}

// maxCallID is the longest ID of a tool call that all APIs take, in bytes: that of OpenAI's Chat
// Completions.
const maxCallID = 40

// callID returns the ID of a tool call in a request: the provider's own, or that of the thread. A digest
// stands for a longer one of a remote agent's call. Other long IDs stay: their provider may read them.
func (p *prompter) callID(id string) string {
	if own, ok := p.providerIDs[id]; ok {
		return own
	}
	if len(id) <= maxCallID || !remote.IsNewID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// message converts one message. ok is false if the model does not receive it: an activity,
// reasoning (which is part of its answer), a result without a call, or a message without parts and calls.
func (p *prompter) message(m agui.Message) (llm.Message, bool) {
	out := llm.Message{Name: m.Name, Parts: Parts(m.Content)}
	switch m.Role {
	case agui.RoleSystem, agui.RoleDeveloper:
		out.Role = llm.RoleSystem
	case agui.RoleUser:
		out.Role = llm.RoleUser
	case agui.RoleTool:
		// An empty result is a result: the call must have one.
		out.Role, out.ToolCallID = llm.RoleTool, p.callID(m.ToolCallID)
		out.IsError = m.Error != ""
		return out, p.isCalled[m.ToolCallID]
	case agui.RoleAssistant:
		out.Role, out.Reasoning = llm.RoleAssistant, p.reasoning[m.ID]
		for _, c := range m.ToolCalls {
			p.isCalled[c.ID] = true
			if p.hasResult[c.ID] {
				out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: p.callID(c.ID), Name: c.Name, Arguments: c.Arguments})
			}
		}
	default:
		// Activities are for users. Reasoning is in p.reasoning.
		return out, false
	}
	return out, len(out.Parts) > 0 || len(out.ToolCalls) > 0
}
