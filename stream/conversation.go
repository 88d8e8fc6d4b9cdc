package stream

import (
	"encoding/hex"
	"slices"

	"github.com/perdure/perdure/agui"
)

// History says how a run's input relates to the thread's conversation
// (forwardedProps.perdure.history).
type History string

const (
	// HistoryMerge is the conversation rule (see Accept); the default.
	HistoryMerge History = ""
	// HistoryComplete takes the client's list literally, as the specification has it.
	HistoryComplete History = "complete"
	// HistoryAppend only adds what the thread does not know yet.
	HistoryAppend History = "append"
)

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
}

func sentDigest(m agui.Message) string {
	sum := m.Digest()
	return hex.EncodeToString(sum[:16])
}

// Acceptance says what a run's conversation is: the thread's first Keep messages, then Tail. It
// holds content only where that is new, so its size does not depend on the conversation's.
type Acceptance struct {
	Keep int `json:"keep"`
	// Last is the id of the last message that is kept; it guards against a conversation that was cut
	// between judging the input and starting the run.
	Last string `json:"last,omitempty"`
	// Cut tells that the client dropped what follows, rather than not knowing it.
	Cut  bool   `json:"cut,omitempty"`
	Tail []Said `json:"tail,omitempty"`
	// Differs tells that the conversation isn't what the client believes it to be.
	Differs bool `json:"differs,omitempty"`
}

// Said is one message behind those that are kept.
type Said struct {
	ID string `json:"id"`
	// Message is nil where the thread already has the message.
	Message *agui.Message `json:"message,omitempty"`
}

// Accept applies the conversation rule to the messages of an input.
//
// What the log produced is taken from the log. A message that a client once sent and that is
// missing now, or has other content, cuts the conversation there. Messages at the end that the
// client merely lacks are kept, since it was away, unless the last message that it sends is one
// that the thread knows: then it asks for another answer to that one, and what follows is cut.
//
// Who sends a fork its first input and none of what it has inherited never had that, and drops nothing.
func (r *Reduction) Accept(sent []agui.Message, mode History) Acceptance {
	var a Acceptance
	switch mode {
	case HistoryComplete:
		var rest int
		a.Keep, rest = r.commonPrefix(sent)
		a.Cut = true
		for _, m := range sent[rest:] {
			a.Tail = append(a.Tail, Said{ID: m.ID, Message: &m})
		}
	case HistoryAppend:
		a.Keep = len(r.Entries)
		a.Tail = r.tail(sent, a.Keep)
	default:
		if r.inherits() && !r.knowsAny(sent) {
			return r.Accept(sent, HistoryAppend)
		}
		var rest int
		a.Keep, rest, a.Cut = r.merge(sent)
		a.Tail = r.tail(sent[rest:], a.Keep)
	}
	if a.Keep > 0 {
		a.Last = r.Entries[a.Keep-1].Message.ID
	}
	a.Differs = !sameMessages(r.apply(a), sent)
	return a
}

// merge returns how many entries stay, from where on the sent messages come behind them, and
// whether the client dropped the others.
func (r *Reduction) merge(sent []agui.Message) (keep, rest int, cut bool) {
	at := r.positions()
	next := 0 // the first entry that is not matched yet
	for i, m := range sent {
		pos, known := at[m.ID]
		if !known || pos < next {
			keep, cut = r.keepBehind(next)
			return keep, i, cut
		}
		if dropped, ok := r.firstSent(next, pos); ok {
			return dropped, i, true
		}
		if e := r.Entries[pos]; e.Sent != "" && e.Sent != sentDigest(m) {
			return pos, i, true
		}
		next = pos + 1
	}
	if len(sent) == 0 {
		return len(r.Entries), 0, false
	}
	if r.behindActivities(next) == len(r.Entries) {
		next = len(r.Entries)
	}
	return next, len(sent), next < len(r.Entries)
}

// behindActivities returns the first entry from one on that is no activity. Clients have activities
// and never send them, so that one is missing says nothing.
func (r *Reduction) behindActivities(next int) int {
	for next < len(r.Entries) && r.Entries[next].Message.Role == agui.RoleActivity {
		next++
	}
	return next
}

// keepBehind keeps what the log produced from an entry on, up to the first that a client sent.
func (r *Reduction) keepBehind(from int) (keep int, cut bool) {
	if dropped, ok := r.firstSent(from, len(r.Entries)); ok {
		return dropped, true
	}
	return len(r.Entries), false
}

func (r *Reduction) firstSent(from, to int) (int, bool) {
	for i := from; i < to; i++ {
		if r.Entries[i].Sent != "" {
			return i, true
		}
	}
	return 0, false
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

// tail lists the messages behind the kept ones; those that are kept anyway are left out.
func (r *Reduction) tail(sent []agui.Message, keep int) []Said {
	at := r.positions()
	var tail []Said
	for _, m := range sent {
		pos, known := at[m.ID]
		switch {
		case known && pos < keep:
		case known && (r.Entries[pos].Sent == "" || r.Entries[pos].Sent == sentDigest(m)):
			tail = append(tail, Said{ID: m.ID})
		default:
			tail = append(tail, Said{ID: m.ID, Message: &m})
		}
	}
	return tail
}

// Renew judges an acceptance against the thread as it is when the run starts: other runs may have
// gone on since it was made. ok is false when what it builds on is no longer there.
//
// An acceptance that cuts nothing keeps the whole thread as it was then, so it keeps what came since
// as well: its client could not know that. What the client said itself and another run has brought in
// meanwhile, since it waited behind that run, stands there already.
func (r *Reduction) Renew(a Acceptance) (_ Acceptance, ok bool) {
	if a.Keep > len(r.Entries) || a.Keep > 0 && r.Entries[a.Keep-1].Message.ID != a.Last {
		return a, false
	}
	if n := len(r.Entries); !a.Cut && n > a.Keep {
		a.Keep, a.Last, a.Differs = n, r.Entries[n-1].Message.ID, true
	}
	return a, true
}

// apply returns the conversation that an acceptance describes. What is behind r.Entries must be free to be
// written to, or clipped: where all of them are kept they are not copied.
func (r *Reduction) apply(a Acceptance) []Entry {
	entries := r.Entries
	keep := min(a.Keep, len(entries))
	if keep < len(entries) {
		entries = slices.Clip(entries[:keep])
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

// sameMessages compares a conversation with a client's list. Activities don't count: clients never
// send them back.
func sameMessages(entries []Entry, sent []agui.Message) bool {
	i := 0
	for _, e := range entries {
		if e.Message.Role == agui.RoleActivity {
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
