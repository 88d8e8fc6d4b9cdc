package snapshot

import (
	"encoding/hex"
	"slices"

	"github.com/perdure/perdure/agui"
)

// asks tells whether an agent is to answer the message: a user said it, or it is the result of a client's tool.
func (e Entry) asks() bool {
	return e.Sent != "" && (e.Message.Role == agui.RoleUser || e.Message.Role == agui.RoleTool)
}

// differs tells whether a client's message, which has the entry's ID, says something else. What an agent said
// never differs: the log has it.
func (e Entry) differs(m agui.Message) bool {
	return e.Message.Role != m.Role || e.Sent != "" && e.Sent != sentDigest(m) && !sameContent(e.Message, m)
}

// seenBy tells whether a client that was shown the log up to a record may have seen the message; 0 = all of it.
func (e Entry) seenBy(seen uint64) bool { return seen == 0 || e.Since <= seen }

// Entry is one message of a thread's conversation.
type Entry struct {
	Message agui.Message `json:"message"`
	// Sent is the digest of what a client sent, and empty for what the log itself produced: answers,
	// tool results, reasoning. Those are taken from the log, whatever copy a client has of them.
	Sent string `json:"sent,omitempty"`
	// ProviderIDs are what the model called its tool calls, by our id. Readers don't see them.
	ProviderIDs map[string]string `json:"providerIds,omitempty"`
	// AnswerID is the id of the answer that a reasoning message led to, if one did: tool results come
	// between an answer and what the model thought after it.
	AnswerID string `json:"answerId,omitempty"`
	// Scope is that of the step which said it.
	Scope string `json:"scope,omitempty"`
	// Since is the sequence of the record from which on readers may have been shown the message: the one
	// that added a client's message, or the one that opened the run of an agent's message.
	Since uint64 `json:"since,omitempty"`
}

// Hidden tells whether clients never see the message: reasoning without text, which is kept for what its provider wants
// back. A client that sent such a message itself keeps it.
func (e Entry) Hidden() bool {
	return e.Message.Role == agui.RoleReasoning && e.Sent == "" && e.Message.Content.Text() == ""
}

// unsent tells whether clients never send the message back: they have activities, and do not have hidden ones.
func (e Entry) unsent() bool { return e.Message.Role == agui.RoleActivity || e.Hidden() }

func sentDigest(m agui.Message) string {
	sum := m.Digest()
	return hex.EncodeToString(sum[:16])
}

// isInstruction tells whether a message instructs the agent. Front ends send such messages along with any list,
// so they neither prove what a client has, nor is their absence an edit.
func isInstruction(m agui.Message) bool {
	return m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper
}

// sameMessage compares what a reader sees of two messages.
func sameMessage(a, b agui.Message) bool {
	if a.ID != b.ID || a.Role != b.Role || a.ToolCallID != b.ToolCallID || a.Content.Text() != b.Content.Text() || len(a.ToolCalls) != len(b.ToolCalls) {
		return false
	}
	for i, c := range a.ToolCalls {
		if d := b.ToolCalls[i]; c.ID != d.ID || c.Name != d.Name || c.Arguments != d.Arguments {
			return false
		}
	}
	return true
}

// AppendShown appends the messages of entries that clients see.
func AppendShown(messages []agui.Message, entries []Entry) []agui.Message {
	messages = slices.Grow(messages, len(entries))
	for _, e := range entries {
		if !e.Hidden() {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// Weight is about how many bytes the entry takes.
func (e Entry) Weight() int { return messageWeight(e.Message) }

// HasRole reports whether one of the messages has a role.
func HasRole(messages []agui.Message, role agui.Role) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return m.Role == role })
}
