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
func (r *Snapshot) Accept(c Claim) stream.Acceptance {
	var a stream.Acceptance
	sent := c.Messages
	switch c.History {
	case HistoryReplace:
		a = r.replace(sent)
	case HistoryAppend:
		a = r.add(sent)
	default:
		at := r.align(sent)
		switch {
		case at.proven:
			a = r.reconcile(sent, at, c.Seen)
		case HasRole(sent, agui.RoleAssistant):
			a = r.replace(sent)
		default:
			a = r.add(sent)
		}
	}
	a.Last = r.lastKept(a)
	conversation := r.Apply(a)
	a.Differs = !sameMessages(conversation, sent)
	a.Unmoved, a.Moved = compareOrder(conversation, sent)
	return a
}

// compareOrder reports whether a client's list has messages of a conversation in another order, or
// lacks messages before known ones. Then it also returns the position of the first known message
// that has to move. Clients do not send activities and hidden messages, so these are skipped.
func compareOrder(conversation []Entry, sent []agui.Message) (unmoved int, moved bool) {
	there, known := make(map[string]bool, len(conversation)), make(map[string]bool, len(sent))
	for _, e := range conversation {
		there[e.Message.ID] = true
	}
	for _, m := range sent {
		known[m.ID] = true
	}
	next := 0
	for _, m := range sent {
		if !there[m.ID] {
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
	for moved && next < len(conversation) && !known[conversation[next].Message.ID] {
		next++
	}
	return next, moved
}

// lastKept returns the ID of the last kept message that stays in the thread; "" = none. Renew looks
// for it. If nothing is cut it is neither an activity nor a placeholder, because the attempt of
// those may still be superseded.
func (r *Snapshot) lastKept(a stream.Acceptance) string {
	for _, e := range slices.Backward(r.Entries[:a.Keep]) {
		if a.Cut || e.Message.Role != agui.RoleActivity && !isPlaceholder(e.Message) {
			return e.Message.ID
		}
	}
	return ""
}

// replace takes the input's messages as the whole conversation. It keeps the entries that equal the
// first of them, so that their copies in the log count.
func (r *Snapshot) replace(sent []agui.Message) stream.Acceptance {
	keep, said := r.commonPrefix(sent)
	a := stream.Acceptance{Keep: keep, Cut: true}
	for _, m := range sent[said:] {
		a.Tail = append(a.Tail, stream.TailMessage{ID: m.ID, Message: &m})
	}
	return a
}

// add keeps the conversation, and appends the input's messages with unknown IDs. An instruction
// that the thread has under another ID is not repeated.
func (r *Snapshot) add(sent []agui.Message) stream.Acceptance {
	a := stream.Acceptance{Keep: len(r.Entries), Append: true}
	at := r.positions()
	for _, m := range sent {
		pos, known := at[m.ID]
		switch {
		case known && isInstruction(m):
			update(&a, r.Entries[pos], m)
		case known, isInstruction(m) && r.instructs(m):
		default:
			a.Tail = append(a.Tail, stream.TailMessage{ID: m.ID, Message: &m})
		}
	}
	return a
}

// update replaces a kept system or developer message by the client's version, if the content
// differs.
func update(a *stream.Acceptance, e Entry, m agui.Message) {
	if e.Message.Role == m.Role && !sameContent(e.Message, m) {
		a.Updated = append(a.Updated, m)
	}
}

// instructs reports whether the thread has a system or developer message with the same content.
func (r *Snapshot) instructs(m agui.Message) bool {
	return slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Message.Role == m.Role && sameContent(e.Message, m) })
}

// skipUnsent returns the position of the first entry, from next on, that clients send back; the
// number of entries = there is none.
func (r *Snapshot) skipUnsent(next int) int {
	for next < len(r.Entries) && r.Entries[next].unsent() {
		next++
	}
	return next
}

// positions returns the positions of all entries, by the IDs of their messages.
func (r *Snapshot) positions() map[string]int {
	at := make(map[string]int, len(r.Entries))
	for i, e := range r.Entries {
		at[e.Message.ID] = i
	}
	return at
}

// commonPrefix returns how many entries equal the first messages of an input, and how many messages
// those are. Entries that clients never send back count as equal.
func (r *Snapshot) commonPrefix(sent []agui.Message) (keep, said int) {
	for said < len(sent) {
		next := r.skipUnsent(keep)
		if next == len(r.Entries) || !sameMessage(r.Entries[next].Message, sent[said]) {
			break
		}
		keep, said = next+1, said+1
	}
	if r.skipUnsent(keep) == len(r.Entries) {
		keep = len(r.Entries)
	}
	return keep, said
}

// Renew judges an acceptance again when its run starts, because other runs may have changed the
// thread since Accept. ok is false if the message that the acceptance builds on has been cut, or if
// a kept message now has the ID of a new one and other content. Then the run must not start with
// this input.
//
// An acceptance that cuts nothing also keeps the messages that were added since: its client could
// not know them. The position of a kept message may have changed, because the result of a subagent
// is inserted before the subagent's messages.
func (r *Snapshot) Renew(a stream.Acceptance) (_ stream.Acceptance, ok bool) {
	keep := 0
	if a.Last != "" {
		keep = 1 + slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Message.ID == a.Last })
		switch {
		case keep == 0 && !a.Append:
			return a, false
		case keep == 0:
			a.Differs = true
		}
	}
	if !a.Cut {
		keep = len(r.Entries)
	}
	if keep != a.Keep {
		a.Unmoved, a.Moved = min(a.Unmoved, a.Keep), a.Moved || len(a.Tail) > 0
		a.Keep, a.Differs = keep, true
	}
	return a, !r.keepsOther(a)
}

// keepsOther reports whether a kept message has the ID of a message of the tail and other content.
// Apply leaves out such a message of the tail. An instruction that is kept is no conflict.
func (r *Snapshot) keepsOther(a stream.Acceptance) bool {
	at := r.positionsOf(a.Tail)
	return slices.ContainsFunc(a.Tail, func(s stream.TailMessage) bool {
		pos, known := at[s.ID]
		return known && pos < a.Keep && s.Message != nil && !isInstruction(*s.Message) && r.Entries[pos].differs(*s.Message)
	})
}

// CanSteer reports whether an active run can be steered with an accepted input: it adds messages
// that the thread does not have. It is false if the input changes a message of the thread, or only
// cuts the conversation.
func (r *Snapshot) CanSteer(a stream.Acceptance) bool {
	at, added := r.positionsOf(a.Tail), false
	for _, s := range a.Tail {
		pos, known := at[s.ID]
		if s.Message != nil && known && r.Entries[pos].differs(*s.Message) {
			return false
		}
		added = added || !known
	}
	return added || !a.Cut
}

// Apply returns the conversation that an acceptance describes, without changing r. If all entries
// are kept the result shares their array, so r.Entries must be clipped.
func (r *Snapshot) Apply(a stream.Acceptance) []Entry {
	entries := r.Entries
	keep := min(a.Keep, len(entries))
	if keep < len(entries) {
		entries = slices.Clip(entries[:keep])
	}
	if len(a.Updated) > 0 {
		entries = updated(entries, a.Updated)
	}
	at := r.positionsOf(a.Tail)
	for _, s := range a.Tail {
		pos, known := at[s.ID]
		switch {
		case known && pos < keep:
		case s.Message != nil:
			entries = append(entries, Entry{Message: *s.Message, Sent: sentDigest(*s.Message)})
		case known:
			entries = append(entries, r.Entries[pos])
		}
	}
	return entries
}

// updated returns entries with new versions of some messages in their places.
func updated(entries []Entry, messages []agui.Message) []Entry {
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
func (r *Snapshot) positionsOf(said []stream.TailMessage) map[string]int {
	ids := make(map[string]bool, len(said))
	for _, s := range said {
		ids[s.ID] = true
	}
	at := make(map[string]int, len(said))
	for i, e := range r.Entries {
		if ids[e.Message.ID] {
			at[e.Message.ID] = i
		}
	}
	return at
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
