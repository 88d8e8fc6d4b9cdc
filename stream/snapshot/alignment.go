package snapshot

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// This file finds the messages of a client's list in the thread (align), and tells a continuation,
// an edit and a regeneration apart (reconcile). Front ends differ: some keep the server's message
// IDs, some make new IDs for users' messages, some for all. So messages are matched by ID first,
// and by content where IDs are unknown. docs/concepts/history.md has a table of cases.

// alignment maps the messages of an input to entries of the thread.
type alignment struct {
	// positions is, for each message of the input, the position of the thread's entry; notFound =
	// none.
	positions []int
	// first is the smallest position of an aligned message that is not an instruction.
	first int
	// proven reports whether the client knows the thread: a message other than an instruction is
	// aligned.
	proven bool
}

// notFound is the position of a message that the thread does not have.
const notFound = -1

// maxStarts bounds how many positions in the thread are tried, the newest first, when messages are
// aligned by content.
const maxStarts = 100

// align finds the messages of an input in the thread: by ID, and messages with unknown IDs by role
// and content in order. Instructions prove nothing, because front ends add them to any list.
func (s *Snapshot) align(sent []agui.Message) alignment {
	a := alignment{positions: make([]int, len(sent)), first: len(s.Entries)}
	ids := s.positions()
	for i, m := range sent {
		pos, ok := ids[m.ID]
		if !ok {
			pos = notFound
		}
		a.positions[i] = pos
		if ok && !isInstruction(m) {
			a.first, a.proven = min(a.first, pos), true
		}
	}
	switch {
	case a.proven:
		s.alignGaps(sent, &a)
	case len(s.Entries) > 0:
		s.alignByContent(sent, &a)
	}
	return a
}

// alignGaps aligns messages with unknown IDs that are before, between and after those with known
// IDs. Some clients give answers the server's IDs and make new IDs for users' messages; others make
// new IDs for answers.
func (s *Snapshot) alignGaps(sent []agui.Message, a *alignment) {
	before := notFound // the position of the entry before the gap
	var gap []int
	for i, m := range sent {
		pos := a.positions[i]
		switch {
		case pos == notFound:
			if hasComparableContent(m) {
				gap = append(gap, i)
			}
			continue
		case isInstruction(m):
			continue
		case pos > before:
			a.first = min(a.first, s.alignGap(sent, gap, a, before+1, pos))
		}
		before, gap = pos, nil
	}
	s.alignRest(sent, gap, a, before+1)
}

// alignRest aligns the messages after the last known one with the entries from a position on, until
// one differs. The last aligned message is an agent's: users' messages after it are new even if
// they equal an entry, because users repeat themselves. gap has positions in sent.
func (s *Snapshot) alignRest(sent []agui.Message, gap []int, a *alignment, from int) {
	var equal []int // positions of entries that equal the first messages of the gap
	proven := 0     // how many of them there are up to the last one of an agent
	for p := from; p < len(s.Entries) && len(equal) < len(gap); p++ {
		e, m := s.Entries[p], sent[gap[len(equal)]]
		fromClient := e.Sent != "" && !isInstruction(e.Message)
		if e.Message.Role == m.Role && e.isComparable() && sameContent(e.Message, m) {
			equal = append(equal, p)
			if !fromClient {
				proven = len(equal)
			}
		} else if fromClient {
			break
		}
	}
	for i, p := range equal[:proven] {
		a.positions[gap[i]] = p
	}
}

// alignGap aligns the messages of a gap with the entries from one position up to another
// (exclusive), the last first, until a client's message differs. It returns the smallest aligned
// position, or to if it aligns none. gap has positions in sent.
func (s *Snapshot) alignGap(sent []agui.Message, gap []int, a *alignment, from, to int) int {
	first := to
	for p := to - 1; p >= from && len(gap) > 0; p-- {
		e, i := s.Entries[p], gap[len(gap)-1]
		switch {
		case e.Message.Role == sent[i].Role && e.isComparable() && sameContent(e.Message, sent[i]):
			a.positions[i], first, gap = p, p, gap[:len(gap)-1]
		case e.Sent != "" && !isInstruction(e.Message):
			return first
		}
	}
	return first
}

// alignByContent aligns an input of a client that makes new IDs for all messages. It looks for the
// longest part of the thread with which the input begins, the newest if there are several. Answers
// and tool results prove that the client knows that part. Users' messages alone prove it only if
// they are all users' messages from there on and the input has more: then nothing would be cut.
func (s *Snapshot) alignByContent(sent []agui.Message, a *alignment) {
	var indexes []int // of the messages of the input that have content to compare
	var sentDigests []contentDigest
	for i, m := range sent {
		if hasComparableContent(m) {
			indexes, sentDigests = append(indexes, i), append(sentDigests, digestContent(m))
		}
	}
	digests := make([]contentDigest, len(s.Entries))
	entriesByDigest := map[contentDigest][]int{}
	for i, e := range s.Entries {
		if e.isComparable() {
			digests[i] = digestContent(e.Message)
			entriesByDigest[digests[i]] = append(entriesByDigest[digests[i]], i)
		}
	}
	first := slices.IndexFunc(sentDigests, func(d contentDigest) bool { return entriesByDigest[d] != nil })
	if first < 0 {
		return
	}
	indexes, sentDigests = indexes[first:], sentDigests[first:]
	starts := entriesByDigest[sentDigests[0]]
	var best []int
	for _, start := range slices.Backward(starts[max(0, len(starts)-maxStarts):]) {
		if match := s.matchFrom(start, sentDigests, digests); len(match) > len(best) && s.proves(match, len(indexes)) {
			best = match
		}
	}
	if best == nil {
		return
	}
	for i, pos := range best {
		a.positions[indexes[i]] = pos
	}
	a.first, a.proven = best[0], true
}

// isComparable reports whether a client may send the message back and it can be recognized by its
// content.
func (e Entry) isComparable() bool { return !e.unsent() && hasComparableContent(e.Message) }

// hasComparableContent reports whether a message can be recognized by its content: a user's, a
// tool's, or an assistant's that is not empty.
func hasComparableContent(m agui.Message) bool {
	switch m.Role {
	case agui.RoleUser, agui.RoleTool:
		return true
	case agui.RoleAssistant:
		return len(m.ToolCalls) > 0 || m.Content.Text() != ""
	}
	return false
}

// matchFrom returns the positions of entries that equal the first messages of an input, from the
// entry start on. It ends at a client's message that differs. Messages of agents that differ are
// skipped: the client may lack them. sent and digests are digests of the input's messages and of
// the entries.
func (s *Snapshot) matchFrom(start int, sent, digests []contentDigest) []int {
	match := []int{start}
	for p := start + 1; p < len(digests) && len(match) < len(sent); p++ {
		switch digests[p] {
		case contentDigest{}: // it has nothing to compare
		case sent[len(match)]:
			match = append(match, p)
		default:
			if s.Entries[p].Sent != "" {
				return match
			}
		}
	}
	return match
}

// proves reports whether a match by content shows that the client knows the thread (see
// alignByContent). comparable is the number of comparable messages of the input.
func (s *Snapshot) proves(match []int, comparable int) bool {
	for _, pos := range match {
		if s.Entries[pos].Message.Role != agui.RoleUser {
			return true
		}
	}
	last := match[len(match)-1]
	_, hasMore := s.firstSent(last+1, len(s.Entries), 0)
	return len(match) < comparable && !hasMore
}

// reconcile judges an input of a client that knows the thread.
//
// Messages before the first aligned one stay. From there on, the first message of the input that is
// new, moved or changed is the change; so is the lack of a client's message that this client has
// seen. If clients' messages follow the change in the thread, the conversation is cut there and
// continues with the rest of the input. Messages of agents that the client merely lacks stay. An
// input that ends in a known message of a client asks for another answer to it: the entries after
// it are cut.
func (s *Snapshot) reconcile(sent []agui.Message, al alignment, seenSeq uint64) stream.Acceptance {
	next := al.first // the first entry that is not matched yet
	last := notFound // the last entry that was matched
	for i, m := range sent {
		pos := al.positions[i]
		switch {
		case isInstruction(m), pos == notFound && isRemark(m):
			continue
		case pos == notFound || pos < next:
			keep, isCut := s.keepAgents(next, seenSeq)
			return s.continueFrom(sent, al, continuation{from: i, keep: keep, isCut: isCut})
		}
		if dropped, ok := s.firstSent(next, pos, seenSeq); ok {
			return s.continueFrom(sent, al, continuation{from: i, keep: dropped, isCut: true})
		}
		if s.Entries[pos].differs(m) {
			return s.continueFrom(sent, al, continuation{from: i, keep: pos, isCut: true})
		}
		last, next = pos, pos+1
	}
	keep, isCut := s.keepAgents(next, seenSeq)
	if s.Entries[last].needsAnswer() {
		keep, isCut = len(s.Entries), s.hasSeen(next, seenSeq)
		if isCut {
			keep = next
		}
	}
	return s.continueFrom(sent, al, continuation{from: len(sent), keep: keep, isCut: isCut})
}

// isRemark reports whether a message is reasoning or an activity. Clients may have such messages
// that the thread does not have.
func isRemark(m agui.Message) bool {
	return m.Role == agui.RoleReasoning || m.Role == agui.RoleActivity
}

// continuation is how an input continues the thread: the first keep entries stay, and the messages
// of the input from the position from on follow them. isCut reports whether the other entries leave
// the conversation.
type continuation struct {
	from, keep int
	isCut      bool
}

// continueFrom returns the acceptance of a continuation. It adds all instructions of the input.
func (s *Snapshot) continueFrom(sent []agui.Message, al alignment, c continuation) stream.Acceptance {
	a := stream.Acceptance{Keep: c.keep, Cut: c.isCut}
	for i, m := range sent {
		pos := al.positions[i]
		switch {
		case isInstruction(m) && pos != notFound && pos < c.keep:
			addUpdate(&a, s.Entries[pos], m)
		case isInstruction(m) && pos == notFound && s.instructs(m), i < c.from && !isInstruction(m), pos != notFound && pos < c.keep:
		case pos != notFound && !s.Entries[pos].differs(m):
			a.Tail = append(a.Tail, stream.TailMessage{ID: s.Entries[pos].Message.ID})
		default:
			a.Tail = append(a.Tail, stream.TailMessage{ID: m.ID, Message: &m})
		}
	}
	return a
}

// keepAgents returns how many entries stay if a change is at the entry from: the agents' messages
// up to the first message of a client that this client has seen. isCut reports whether there is
// such a message.
func (s *Snapshot) keepAgents(from int, seenSeq uint64) (keep int, isCut bool) {
	if dropped, ok := s.firstSent(from, len(s.Entries), seenSeq); ok {
		return dropped, true
	}
	return len(s.Entries), false
}

// firstSent returns the position of the first message of a client with from ≤ position < to that
// this client has seen; false = there is none. Instructions do not count.
func (s *Snapshot) firstSent(from, to int, seenSeq uint64) (int, bool) {
	for i := from; i < to; i++ {
		if e := s.Entries[i]; e.Sent != "" && !isInstruction(e.Message) && e.seenBy(seenSeq) {
			return i, true
		}
	}
	return 0, false
}

// hasSeen reports whether a client has seen any message from an entry on. Activities and hidden
// messages do not count: clients never send them back.
func (s *Snapshot) hasSeen(from int, seenSeq uint64) bool {
	return slices.ContainsFunc(s.Entries[from:], func(e Entry) bool {
		return !e.unsent() && e.seenBy(seenSeq)
	})
}

// contentDigest is the digest of a message's content; the zero value is that of a message without
// comparable content.
type contentDigest [32]byte

// digestContent returns the digest of a message's role, content, error and tool calls, without IDs
// and metadata.
func digestContent(m agui.Message) contentDigest {
	content := agui.Message{Role: m.Role, Content: m.Content, Error: m.Error}
	for _, c := range m.ToolCalls {
		content.ToolCalls = append(content.ToolCalls, agui.ToolCall{Name: c.Name, Arguments: c.Arguments})
	}
	return content.Digest()
}

// sameContent reports whether two messages are equal but for their IDs and metadata.
func sameContent(a, b agui.Message) bool { return digestContent(a) == digestContent(b) }
