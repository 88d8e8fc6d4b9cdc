package snapshot

import (
	"encoding/hex"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// needsAnswer reports whether the message asks an agent for an answer: a user's message, or the
// result of a client tool call.
func (e Entry) needsAnswer() bool {
	return e.Sent != "" && (e.Message.Role == agui.RoleUser || e.Message.Role == agui.RoleTool)
}

// differs reports whether a client's message with the entry's ID has other content. A message of an
// agent never differs: the log has it.
func (e Entry) differs(m agui.Message) bool {
	return e.Message.Role != m.Role || e.Sent != "" && e.Sent != sentDigest(m) && !sameContent(e.Message, m)
}

// seenBy reports whether a client that was shown the log up to the sequence seen may have seen the
// message; 0 = the client counts as up to date.
func (e Entry) seenBy(seenSeq uint64) bool { return seenSeq == 0 || e.Since <= seenSeq }

// Entry is one message of a thread's conversation, with what the thread knows about its origin.
// Entries are immutable: snapshots share them.
type Entry struct {
	Message agui.Message `json:"message"`
	// Sent is the digest of the message as a client sent it; "" = an agent or a tool made the
	// message, and the log's version of it counts, whatever copy a client has.
	Sent string `json:"sent,omitempty"`
	// ProviderIDs are those of Result.ProviderIDs that belong to the message.
	ProviderIDs map[string]string `json:"providerIds,omitempty"`
	// Predicted are the members of the state that follow arguments of the tool calls, by their IDs.
	// They are dropped when the agent continues: then all calls have results.
	Predicted map[string][]stream.Predicted `json:"predicted,omitempty"`
	// AnswerID is the ID of the answer that a reasoning message belongs to; "" = none.
	AnswerID string `json:"answerId,omitempty"`
	// Scope is that of the pipeline step that added the message; "" = none.
	Scope string `json:"scope,omitempty"`
	// Visibility says who sees the message. ShownCalls are the tool calls of it that clients see
	// even so.
	Visibility stream.Visibility `json:"visibility,omitempty"`
	ShownCalls []string          `json:"shownCalls,omitempty"`
	// Since is the sequence of the record after which readers may have seen the message: the one
	// that added a client's message, or the first one of the run in which an agent added it.
	Since uint64 `json:"since,omitempty"`
}

// Shown returns the message as clients see it; false = they never see it. Two kinds are hidden:
// reasoning without text, which is kept because its provider wants it back, and messages of hidden
// steps. Of an answer of a hidden step clients see the calls that have interrupts. A client that
// sent a message keeps it.
func (e Entry) Shown() (agui.Message, bool) {
	switch {
	case e.Sent != "":
		return e.Message, true
	case e.Visibility == stream.VisibleToAll:
		return e.Message, e.Message.Role != agui.RoleReasoning || e.Message.Content.Text() != ""
	case len(e.ShownCalls) == 0:
		return agui.Message{}, false
	case e.Message.Role == agui.RoleTool:
		return e.Message, true
	}
	shown := agui.Message{ID: e.Message.ID, Role: e.Message.Role, SubagentRunID: e.Message.SubagentRunID}
	for _, c := range e.Message.ToolCalls {
		if slices.Contains(e.ShownCalls, c.ID) {
			shown.ToolCalls = append(shown.ToolCalls, c)
		}
	}
	return shown, true
}

// Hidden reports whether clients never see the message (see Shown).
func (e Entry) Hidden() bool {
	_, ok := e.Shown()
	return !ok
}

// unsent reports whether clients never send the message back: activities and hidden messages.
func (e Entry) unsent() bool { return e.Message.Role == agui.RoleActivity || e.Hidden() }

// sentDigest returns the digest of a message as a client sent it.
func sentDigest(m agui.Message) string {
	sum := m.Digest()
	return hex.EncodeToString(sum[:16])
}

// isInstruction reports whether a message is a system or developer message. Front ends add such
// messages to any list, so they do not prove what a client knows, and a missing one is not an edit.
func isInstruction(m agui.Message) bool {
	return m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper
}

// sameMessage reports whether two messages are equal in the parts that clients show: IDs, role,
// text and tool calls.
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

// AppendShown appends the messages of entries, except for hidden ones.
func AppendShown(messages []agui.Message, entries []Entry) []agui.Message {
	messages = slices.Grow(messages, len(entries))
	for _, e := range entries {
		if m, ok := e.Shown(); ok {
			messages = append(messages, m)
		}
	}
	return messages
}

// Weight is about how many bytes of memory the entry's message takes.
func (e Entry) Weight() int { return messageWeight(e.Message) }

// HasRole reports whether one of the messages has a role.
func HasRole(messages []agui.Message, role agui.Role) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return m.Role == role })
}
