package snapshot

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// This file judges the messages of a run's input against the thread's conversation. AG-UI clients
// send their whole list with each run. The list may be complete, only new, edited, or out of date,
// and message IDs may be new ones. The API judges an input when it arrives (Accept), and writes the
// result with the proposal. The activity that opens the run judges it again (Renew), and the fold
// carries it out (Apply).

// History is the caller's choice of how the messages of a run's input relate to the thread's
// conversation (forwardedProps.perdure.history, and the agent's default).
type History string

// The ways to read the messages of an input. See docs/concepts/history.md for a table of cases.
const (
	// HistoryAuto aligns the input's messages with the thread (see Snapshot.Accept).
	HistoryAuto History = "auto"
	// HistoryAppend adds the messages whose IDs the thread does not have, and changes nothing else.
	HistoryAppend History = "append"
	// HistoryReplace takes the input's messages as the complete conversation, as AG-UI specifies.
	HistoryReplace History = "replace"
)

// Claim is a client's version of the conversation: its messages, and how they are meant.
type Claim struct {
	Messages []agui.Message
	History  History // "" = HistoryAuto
	// Seen is the sequence of the last record that the client was shown. A message that joined the
	// thread after it is never an omission of the client. 0 = unknown: the client counts as up to
	// date.
	Seen uint64
}

// Accept judges the messages of an input against the thread, and returns the conversation of the
// input's run. It changes nothing.
//
// Messages of agents are always taken from the log, whatever copy the client sends. With
// HistoryAuto the messages are aligned with the thread first (see align). If none aligns, they are
// appended, or replace the conversation if one of them is an assistant's. If some align, reconcile
// tells a continuation, an edit and a regeneration apart.
func (s *Snapshot) Accept(c Claim) stream.Acceptance {
	var a stream.Acceptance
	sent := c.Messages
	switch c.History {
	case HistoryReplace:
		a = s.acceptReplacing(sent)
	case HistoryAppend:
		a = s.acceptAppending(sent)
	default:
		al := s.align(sent)
		switch {
		case al.proven:
			a = s.reconcile(sent, al, c.Seen)
		case HasRole(sent, agui.RoleAssistant):
			a = s.acceptReplacing(sent)
		default:
			a = s.acceptAppending(sent)
		}
	}
	a.Last = s.lastKept(a)
	conversation := s.Apply(a)
	a.Differs = !sameMessages(conversation, sent)
	a.Unmoved, a.Moved = compareOrder(conversation, sent)
	return a
}

// compareOrder reports whether a client's list has messages of a conversation in another order, or
// lacks messages before known ones. Then it also returns the position of the first known message
// that has to move. Clients do not send activities and hidden messages, so these are skipped.
func compareOrder(conversation []Entry, sent []agui.Message) (unmoved int, moved bool) {
	inConversation, inSent := make(map[string]bool, len(conversation)), make(map[string]bool, len(sent))
	for _, e := range conversation {
		inConversation[e.Message.ID] = true
	}
	for _, m := range sent {
		inSent[m.ID] = true
	}
	next := 0
	for _, m := range sent {
		if !inConversation[m.ID] {
			continue
		}
		for next < len(conversation) && conversation[next].unsent() && conversation[next].Message.ID != m.ID {
			next++
		}
		if next == len(conversation) || conversation[next].Message.ID != m.ID {
			moved = true
			break
		}
		next++
	}
	for moved && next < len(conversation) && !inSent[conversation[next].Message.ID] {
		next++
	}
	return next, moved
}

// lastKept returns the ID of the last kept message that stays in the thread; "" = none. Renew looks
// for it. If nothing is cut it is neither an activity nor a placeholder, because the attempt of
// those may still be superseded.
func (s *Snapshot) lastKept(a stream.Acceptance) string {
	for _, e := range slices.Backward(s.Entries[:a.Keep]) {
		if a.Cut || e.Message.Role != agui.RoleActivity && !isPlaceholder(e.Message) {
			return e.Message.ID
		}
	}
	return ""
}

// acceptReplacing takes the input's messages as the whole conversation. It keeps the entries that
// equal the first of them, so that their copies in the log count.
func (s *Snapshot) acceptReplacing(sent []agui.Message) stream.Acceptance {
	keep, skip := s.commonPrefix(sent)
	a := stream.Acceptance{Keep: keep, Cut: true}
	for _, m := range sent[skip:] {
		a.Tail = append(a.Tail, stream.TailMessage{ID: m.ID, Message: &m})
	}
	return a
}

// acceptAppending keeps the conversation, and appends the input's messages with unknown IDs. An
// instruction that the thread has under another ID is not repeated.
func (s *Snapshot) acceptAppending(sent []agui.Message) stream.Acceptance {
	a := stream.Acceptance{Keep: len(s.Entries), Append: true}
	positions := s.positions()
	for _, m := range sent {
		pos, found := positions[m.ID]
		switch {
		case found && isInstruction(m):
			addUpdate(&a, s.Entries[pos], m)
		case found, isInstruction(m) && s.instructs(m):
		default:
			a.Tail = append(a.Tail, stream.TailMessage{ID: m.ID, Message: &m})
		}
	}
	return a
}

// addUpdate replaces a kept system or developer message by the client's version, if the content
// differs.
func addUpdate(a *stream.Acceptance, e Entry, m agui.Message) {
	if e.Message.Role == m.Role && !sameContent(e.Message, m) {
		a.Updated = append(a.Updated, m)
	}
}

// instructs reports whether the thread has a system or developer message with the same content.
func (s *Snapshot) instructs(m agui.Message) bool {
	return slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Message.Role == m.Role && sameContent(e.Message, m) })
}

// skipUnsent returns the position of the first entry, from next on, that clients send back; the
// number of entries = there is none.
func (s *Snapshot) skipUnsent(next int) int {
	for next < len(s.Entries) && s.Entries[next].unsent() {
		next++
	}
	return next
}

// positions returns the positions of all entries, by the IDs of their messages.
func (s *Snapshot) positions() map[string]int {
	positions := make(map[string]int, len(s.Entries))
	for i, e := range s.Entries {
		positions[e.Message.ID] = i
	}
	return positions
}

// commonPrefix returns how many entries equal the first messages of an input, and how many messages
// those are. Entries that clients never send back count as equal.
func (s *Snapshot) commonPrefix(sent []agui.Message) (entries, messages int) {
	for messages < len(sent) {
		next := s.skipUnsent(entries)
		if next == len(s.Entries) {
			break
		}
		if shown, _ := s.Entries[next].Shown(); !sameMessage(shown, sent[messages]) {
			break
		}
		entries, messages = next+1, messages+1
	}
	if s.skipUnsent(entries) == len(s.Entries) {
		entries = len(s.Entries)
	}
	return entries, messages
}

// Has reports whether the conversation has a message of a client with this ID and this content.
func (s *Snapshot) Has(m agui.Message) bool {
	return slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Message.ID == m.ID && e.Sent != "" && sameContent(e.Message, m) })
}

// Renew judges an acceptance again when its run starts, because other runs may have changed the
// thread since Accept. ok is false if the message that the acceptance builds on has been cut, or if
// a kept message now has the ID of a new one and other content. Then the run must not start with
// this input.
//
// An acceptance that cuts nothing also keeps the messages that were added since: its client could
// not know them. The position of a kept message may have changed, because the result of a subagent
// is inserted before the subagent's messages.
func (s *Snapshot) Renew(a stream.Acceptance) (_ stream.Acceptance, ok bool) {
	keep := 0
	if a.Last != "" {
		keep = 1 + slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Message.ID == a.Last })
		switch {
		case keep == 0 && !a.Append:
			return a, false
		case keep == 0:
			a.Differs = true
		}
	}
	if !a.Cut {
		keep = len(s.Entries)
	}
	if keep != a.Keep {
		a.Unmoved, a.Moved = min(a.Unmoved, a.Keep), a.Moved || len(a.Tail) > 0
		a.Keep, a.Differs = keep, true
	}
	return a, !s.keepsOther(a)
}

// keepsOther reports whether a kept message has the ID of a message of the tail and other content.
// Apply leaves out such a message of the tail. An instruction that is kept is no conflict.
func (s *Snapshot) keepsOther(a stream.Acceptance) bool {
	positions := s.positionsOf(a.Tail)
	return slices.ContainsFunc(a.Tail, func(m stream.TailMessage) bool {
		pos, found := positions[m.ID]
		return found && pos < a.Keep && m.Message != nil && !isInstruction(*m.Message) && s.Entries[pos].differs(*m.Message)
	})
}

// CanSteer reports whether an active run can be steered with an accepted input: it adds messages
// that the thread does not have. It is false if the input changes a message of the thread, or only
// cuts the conversation.
func (s *Snapshot) CanSteer(a stream.Acceptance) bool {
	positions, added := s.positionsOf(a.Tail), false
	for _, m := range a.Tail {
		pos, found := positions[m.ID]
		if m.Message != nil && found && s.Entries[pos].differs(*m.Message) {
			return false
		}
		added = added || !found
	}
	return added || !a.Cut
}

// Apply returns the conversation that an acceptance describes, without changing s. If all entries
// are kept the result shares their array, so s.Entries must be clipped.
func (s *Snapshot) Apply(a stream.Acceptance) []Entry {
	entries := s.Entries
	keep := min(a.Keep, len(entries))
	if keep < len(entries) {
		entries = slices.Clip(entries[:keep])
	}
	if len(a.Updated) > 0 {
		entries = withUpdates(entries, a.Updated)
	}
	positions := s.positionsOf(a.Tail)
	for _, m := range a.Tail {
		pos, found := positions[m.ID]
		switch {
		case found && pos < keep:
		case m.Message != nil:
			entries = append(entries, Entry{Message: *m.Message, Sent: sentDigest(*m.Message)})
		case found:
			entries = append(entries, s.Entries[pos])
		}
	}
	return entries
}

// withUpdates returns entries with new versions of some messages in their places.
func withUpdates(entries []Entry, messages []agui.Message) []Entry {
	entries = slices.Clone(entries) // other snapshots share the list
	for _, m := range messages {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Message.ID == m.ID })
		if i >= 0 {
			entries[i] = Entry{Message: m, Sent: sentDigest(m), Since: entries[i].Since}
		}
	}
	return entries
}

// positionsOf returns the positions of the messages of a tail that the thread has, by ID. It
// indexes no other entry: a thread is long, and an input has few messages.
func (s *Snapshot) positionsOf(messages []stream.TailMessage) map[string]int {
	ids := make(map[string]bool, len(messages))
	for _, m := range messages {
		ids[m.ID] = true
	}
	positions := make(map[string]int, len(messages))
	for i, e := range s.Entries {
		if ids[e.Message.ID] {
			positions[e.Message.ID] = i
		}
	}
	return positions
}

// sameMessages reports whether a client's list shows a conversation: activities and hidden messages
// are ignored on both sides.
func sameMessages(entries []Entry, sent []agui.Message) bool {
	i := 0
	for _, e := range entries {
		if e.unsent() {
			continue
		}
		for i < len(sent) && sent[i].Role == agui.RoleActivity {
			i++
		}
		if i == len(sent) || !sameMessage(e.Message, sent[i]) {
			return false
		}
		i++
	}
	for i < len(sent) && sent[i].Role == agui.RoleActivity {
		i++
	}
	return i == len(sent)
}
