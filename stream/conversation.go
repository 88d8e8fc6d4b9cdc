package stream

import (
	"encoding/hex"
	"slices"

	"github.com/perdure/perdure/agui"
)

// History says how the messages of a run's input relate to the thread's conversation
// (forwardedProps.perdure.history, and the agent's default).
type History string

// The ways to read the messages of an input. See docs/history.md for a table of cases.
const (
	// HistoryAuto aligns the input's messages with the thread (see Reduction.Accept).
	HistoryAuto History = "auto"
	// HistoryAppend adds the messages whose IDs the thread does not have, and changes nothing else.
	HistoryAppend History = "append"
	// HistoryReplace takes the input's messages as the complete conversation, as AG-UI specifies.
	HistoryReplace History = "replace"
)

// Claim is what a client says about the conversation: its messages, and how they are meant.
type Claim struct {
	Messages []agui.Message
	History  History // "" = HistoryAuto
	// Seen is the sequence of the last record that the client was shown. A message that joined the thread
	// after it is never an omission of the client. 0 = the client did not say, and counts as up to date.
	Seen uint64
}

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

// Acceptance says what a run's conversation is: the thread's first Keep messages, then Tail. It
// holds content only where that is new, so its size does not depend on the conversation's.
type Acceptance struct {
	Keep int `json:"keep"`
	// Last is the ID of the last message that is kept ("" = none). It guards against a conversation that was
	// cut after the input was judged and before its run started.
	Last string `json:"last,omitempty"`
	// Cut tells that the messages after the kept ones leave the conversation, unless Tail names them.
	// Without Cut, messages that join the thread until the run starts are kept as well.
	Cut bool `json:"cut,omitempty"`
	// Append tells that the input only adds messages. It builds on none of the kept ones, so it also continues a
	// conversation that was cut meanwhile.
	Append bool   `json:"append,omitempty"`
	Tail   []Said `json:"tail,omitempty"`
	// Updated are new versions of kept system and developer messages. They take the place of the old ones.
	Updated []agui.Message `json:"updated,omitempty"`
	// Differs tells that the conversation isn't what the client believes it to be.
	Differs bool `json:"differs,omitempty"`
}

// Said is one message after the kept ones.
type Said struct {
	ID string `json:"id"`
	// Message is nil where the thread already has the message.
	Message *agui.Message `json:"message,omitempty"`
}

// withoutContent is what the opening of a run repeats of an acceptance: the rest stands in the proposal.
func (a Acceptance) withoutContent() Acceptance {
	a.Tail, a.Updated = nil, nil
	return a
}

// Accept judges the messages of an input against the thread and returns the conversation of its run.
//
// What an agent said is always taken from the log, whatever copy the client sends. With HistoryAuto
// the messages are aligned with the thread first (see align). If none aligns, they are appended; if
// they contain an assistant's message they are another conversation, and replace the thread's.
// Otherwise reconcile tells a continuation, an edit and a regeneration apart.
func (r *Reduction) Accept(c Claim) Acceptance {
	var a Acceptance
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
		case hasRole(sent, agui.RoleAssistant):
			a = r.replace(sent)
		default:
			a = r.add(sent)
		}
	}
	a.Last = r.lastKept(a)
	a.Differs = !sameMessages(r.apply(a), sent)
	return a
}

// lastKept is the ID of the message that an acceptance builds on; "" = it builds on none. Where nothing is cut that is no
// activity: one that is under way may still go.
func (r *Reduction) lastKept(a Acceptance) string {
	for _, e := range slices.Backward(r.Entries[:a.Keep]) {
		if a.Cut || e.Message.Role != agui.RoleActivity && !isPlace(e.Message) {
			return e.Message.ID
		}
	}
	return ""
}

// replace takes the input's messages literally. Equal messages at the beginning are kept.
func (r *Reduction) replace(sent []agui.Message) Acceptance {
	keep, said := r.commonPrefix(sent)
	a := Acceptance{Keep: keep, Cut: true}
	for _, m := range sent[said:] {
		a.Tail = append(a.Tail, Said{ID: m.ID, Message: &m})
	}
	return a
}

// add keeps the thread's messages and adds the new ones among the input's.
func (r *Reduction) add(sent []agui.Message) Acceptance {
	a := Acceptance{Keep: len(r.Entries), Append: true}
	at := r.positions()
	for _, m := range sent {
		pos, known := at[m.ID]
		switch {
		case known && isInstruction(m):
			a.update(r.Entries[pos], m)
		case known, isInstruction(m) && r.instructs(m):
		default:
			a.Tail = append(a.Tail, Said{ID: m.ID, Message: &m})
		}
	}
	return a
}

// update replaces a kept system or developer message whose content changed.
func (a *Acceptance) update(e Entry, m agui.Message) {
	if e.Message.Role == m.Role && !sameContent(e.Message, m) {
		a.Updated = append(a.Updated, m)
	}
}

// isInstruction tells whether a message instructs the agent. Front ends send such messages along with any list,
// so they neither prove what a client has, nor is their absence an edit.
func isInstruction(m agui.Message) bool {
	return m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper
}

// instructs tells whether the thread has an instruction with the same content.
func (r *Reduction) instructs(m agui.Message) bool {
	return slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Message.Role == m.Role && sameContent(e.Message, m) })
}

// behindActivities returns the first entry from one on that clients send back. That one of the others is missing says
// nothing.
func (r *Reduction) behindActivities(next int) int {
	for next < len(r.Entries) && r.Entries[next].unsent() {
		next++
	}
	return next
}

func (r *Reduction) positions() map[string]int {
	at := make(map[string]int, len(r.Entries))
	for i, e := range r.Entries {
		at[e.Message.ID] = i
	}
	return at
}

// commonPrefix returns how many entries the client has as they are, and how many of its messages
// these are.
func (r *Reduction) commonPrefix(sent []agui.Message) (keep, said int) {
	for said < len(sent) {
		next := r.behindActivities(keep)
		if next == len(r.Entries) || !sameMessage(r.Entries[next].Message, sent[said]) {
			break
		}
		keep, said = next+1, said+1
	}
	if r.behindActivities(keep) == len(r.Entries) {
		keep = len(r.Entries)
	}
	return keep, said
}

// Renew judges an acceptance against the thread as it is when the run starts: other runs may have
// gone on since it was made. ok is false when what it builds on is no longer there.
//
// An acceptance that cuts nothing keeps the whole thread as it was then, so it keeps what came since
// as well: its client could not know that. What the client said itself and another run has brought in
// meanwhile, since it waited behind that run, stands there already.
//
// The position of a kept message may have changed: the result of a subagent's work is inserted before what the
// subagent said.
func (r *Reduction) Renew(a Acceptance) (_ Acceptance, ok bool) {
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
		a.Keep, a.Differs = keep, true
	}
	return a, true
}

// CanSteer tells whether a run that is under way can be told what an input says: messages that the thread does not have.
// It can not if the input changes a message of the thread, or only cuts the conversation.
func (r *Reduction) CanSteer(a Acceptance) bool {
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

// apply returns the conversation that an acceptance describes. What is behind r.Entries must be free to be
// written to, or clipped: where all of them are kept they are not copied.
func (r *Reduction) apply(a Acceptance) []Entry {
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
	entries = slices.Clone(entries) // other reductions hold the list as it was
	for _, m := range messages {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Message.ID == m.ID })
		if i >= 0 {
			entries[i] = Entry{Message: m, Sent: sentDigest(m), Since: entries[i].Since}
		}
	}
	return entries
}

// positionsOf returns where in the conversation messages stand that are said; it is asked for each run of
// a long thread, in which few are said at a time.
func (r *Reduction) positionsOf(said []Said) map[string]int {
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

// sameMessages compares a conversation with a client's list. Activities and hidden messages don't count: clients never
// send them back.
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
