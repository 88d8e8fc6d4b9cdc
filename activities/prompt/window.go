package prompt

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// The window decides which part of a conversation a model receives. An activity uses it in this
// order:
//
//	w := NewWindow(entries, room)
//	w.CutLargeResults()             cuts results that take much of the room
//	w.Keep(keep)                    marks what stays longest
//	w.Replace(…) or w.Trim()        summarizes, or leaves out, the oldest messages
//	w.Squeeze()                     the last resort
//	w.Entries()
//
// Every decision depends only on the entries, so a retry sends the same request.

// Window is the part of a conversation that fits the room of a model. It leaves out whole groups of
// messages, the oldest first, so a tool call never loses its result. System messages, the last user
// message and the newest group always stay, so the result may still exceed the room. The entries of
// the caller are not changed. A Window is used by one goroutine.
type Window struct {
	groups []group
	// room is in tokens, at least 1.
	room int64
	// first is the number of groups at the beginning that Keep has marked. summary is in the
	// place of the groups after them; nil = none.
	first   int
	summary *snapshot.Entry
}

// group is the unit that is left out or stays: a message, or an answer with its reasoning and the
// results of its tool calls.
type group struct {
	entries []snapshot.Entry
	// isFixed groups are never left out. kept groups are left out last, by Squeeze. out groups are
	// left out.
	isFixed bool
	isKept  bool
	isOut   bool
}

// NewWindow returns a window on a conversation that has room tokens. Without further calls it
// contains everything.
func NewWindow(entries []snapshot.Entry, room int64) *Window {
	return &Window{groups: groupsOf(entries), room: max(room, 1)}
}

// groupsOf groups results with their calls, and reasoning with its answer. Activities are left out,
// because models do not receive them.
func groupsOf(entries []snapshot.Entry) []group {
	var groups []group
	byID, byCall := map[string]int{}, map[string]int{}
	// pending are reasoning messages whose answer follows.
	var pending []snapshot.Entry
	for _, e := range entries {
		m := e.Message
		index, found := byCall[m.ToolCallID]
		if m.Role == agui.RoleReasoning {
			index, found = byID[e.AnswerID]
		}
		switch {
		case m.Role == agui.RoleActivity:
		// A result joins the group of its call, even if another message came in between.
		case found && (m.Role == agui.RoleReasoning || m.Role == agui.RoleTool):
			groups[index].entries = append(groups[index].entries, e)
		case m.Role == agui.RoleReasoning:
			pending = append(pending, e)
		default:
			byID[m.ID] = len(groups)
			for _, c := range m.ToolCalls {
				byCall[c.ID] = len(groups)
			}
			groups = append(groups, group{entries: append(pending, e), isFixed: m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper})
			pending = nil
		}
	}
	return groups
}

const (
	// Keep marks at most a firstShare-th of the room at the beginning, and a lastShare-th at the
	// end. If kept messages filled the room, every turn would have to make room again.
	firstShare = 4
	lastShare  = 2
)

// Keep marks the groups that stay as long as possible: the first k.First and the last k.Last
// messages, within their shares of the room. It also fixes the newest group and the last user
// message. Call it once, before Trim, Replace and Half.
func (w *Window) Keep(k agents.Keep) {
	left := w.room / firstShare
	for i, counted := 0, 0; i < len(w.groups) && counted < k.First; i++ {
		if left -= w.groups[i].tokens(); left < 0 {
			break
		}
		w.groups[i].isKept, w.first = true, i+1
		counted += w.groups[i].messages()
	}
	left = w.room / lastShare
	user := false
	for i, counted := len(w.groups)-1, 0; i >= 0; i-- {
		g := &w.groups[i]
		left -= g.tokens()
		g.isKept = g.isKept || counted < k.Last && left >= 0
		// counted == 0 finds the newest group with a message that counts; user finds the last user
		// message.
		g.isFixed = g.isFixed || counted == 0 && g.messages() > 0 || !user && g.hasRole(agui.RoleUser)
		user = user || g.hasRole(agui.RoleUser)
		counted += g.messages()
	}
}

// messages counts the messages of users, assistants and tools. Those of other roles do not count
// towards Keep.
func (g *group) messages() int {
	n := 0
	for _, e := range g.entries {
		if r := e.Message.Role; r == agui.RoleUser || r == agui.RoleAssistant || r == agui.RoleTool {
			n++
		}
	}
	return n
}

// hasRole reports whether a message of the group has the role.
func (g *group) hasRole(r agui.Role) bool {
	return slices.ContainsFunc(g.entries, func(e snapshot.Entry) bool { return e.Message.Role == r })
}

// tokens estimates the tokens of the group, whether it is left out or not.
func (g *group) tokens() int64 {
	var n int64
	for _, e := range g.entries {
		n += entryTokens(e)
	}
	return n
}

// tokens estimates the tokens of the summary and of the groups that are not left out.
func (w *Window) tokens() int64 {
	var n int64
	if w.summary != nil {
		n = entryTokens(*w.summary)
	}
	for i := range w.groups {
		if !w.groups[i].isOut {
			n += w.groups[i].tokens()
		}
	}
	return n
}

// Over returns by how many tokens the conversation exceeds the room; 0 = it fits.
func (w *Window) Over() int64 { return max(0, w.tokens()-w.room) }

const (
	// MinResult is how many tokens a cut result keeps at least. It is also the least bound of a
	// summary.
	MinResult = 250
	// A result that takes more than one resultShare-th of the room is cut first.
	resultShare = 4
)

// CutLargeResults cuts the middle out of tool results that take more than a quarter of the room.
func (w *Window) CutLargeResults() { w.cutResults(resultShare) }

// cutResults cuts the middle out of tool results that take more than one share-th of the room.
// Media in results stay.
func (w *Window) cutResults(share int64) {
	limit := max(MinResult, w.room/share)
	for i := range w.groups {
		g := &w.groups[i]
		for j, e := range g.entries {
			if g.isOut || e.Message.Role != agui.RoleTool || TextTokens(e.Message.Content.Text()) <= limit {
				continue
			}
			// The entries are shared with the snapshot, which is immutable.
			g.entries = slices.Clone(g.entries)
			g.entries[j].Message.Content = cutContent(e.Message.Content, limit)
		}
	}
}

// leaveOut leaves out groups, the oldest first, until at least so many tokens are left out.
// isAllowed reports whether it may leave a group out; fixed groups always stay.
func (w *Window) leaveOut(tokens int64, isAllowed func(*group) bool) {
	for i := range w.groups {
		if g := &w.groups[i]; tokens > 0 && !g.isOut && !g.isFixed && isAllowed(g) {
			g.isOut = true
			tokens -= g.tokens()
		}
	}
}

// isRemovable reports whether Trim may leave out a group. anyGroup is for Squeeze.
func isRemovable(g *group) bool { return !g.isKept }
func anyGroup(*group) bool      { return true }

// trimSteps divides the room into steps of Trim. What is left out grows by a step at a time, so the
// beginning of the request stays the same for some turns, and the provider's prompt cache matches.
const trimSteps = 4

// Trim leaves out the oldest groups until the rest fits, and squeezes if it does not.
func (w *Window) Trim() {
	if over := w.Over(); over > 0 {
		step := max(1, w.room/trimSteps)
		// Rounded up to whole steps.
		w.leaveOut((over+step-1)/step*step, isRemovable)
	}
	w.Squeeze()
}

// Squeeze is the last resort if the conversation still exceeds the room: it cuts tool results down
// to a sixteenth of the room, and then leaves out groups that Keep has marked.
func (w *Window) Squeeze() {
	if w.Over() > 0 {
		w.cutResults(resultShare * resultShare)
	}
	w.leaveOut(w.Over(), anyGroup)
}

// Entries returns the messages that fit, group by group. A summary follows the groups that are kept
// at the beginning. Without a summary, a note stands in the place of the first group that is left
// out.
func (w *Window) Entries() []snapshot.Entry {
	var entries []snapshot.Entry
	hasNote := false
	for i := range w.groups {
		if !hasNote && w.summary != nil && i >= w.first {
			entries, hasNote = append(entries, *w.summary), true
		}
		if g := &w.groups[i]; !g.isOut {
			entries = append(entries, g.entries...)
		} else if !hasNote && w.summary == nil {
			entries, hasNote = append(entries, Private("left-out", leftOutNote)), true
		}
	}
	return entries
}

// Room returns the room of the window in tokens.
func (w *Window) Room() int64 { return w.room }

// Older returns the entries of each group after those that are kept at the beginning. Summaries
// replace the first of them, and count them.
func (w *Window) Older() [][]snapshot.Entry {
	var older [][]snapshot.Entry
	for _, g := range w.groups[w.first:] {
		older = append(older, g.entries)
	}
	return older
}

// Replace puts a text in the place of the first count older groups. Fixed groups among them stay,
// after the text. A later Replace takes the place of this one.
func (w *Window) Replace(count int, text string) {
	summary := Private("summary", text)
	w.summary = &summary
	for i := range w.groups[w.first:][:count] {
		g := &w.groups[w.first+i]
		g.isOut = !g.isFixed
	}
}

// Half returns how many of the older groups a new summary has to replace so that half of the room
// is free afterwards. from is how many of them the present summary replaces. Half stops before a
// group that Keep has marked and before the newest group, so the result may be from: then there is
// nothing to summarize.
func (w *Window) Half(from int) int {
	groups := w.groups[w.first:]
	left := w.tokens() - w.room/2
	for i := from; i < len(groups); i++ {
		switch g := &groups[i]; {
		case g.isKept || i == len(groups)-1 || left <= 0:
			return i
		case !g.isFixed:
			left -= g.tokens()
		}
	}
	return len(groups)
}

// leftOutNote is the note in the place of messages that are left out without a summary.
const leftOutNote = "[Older messages of this conversation are left out here.]"

// cutContent cuts the middle out of the text of content. All text parts become one; media stay
// after it.
func cutContent(c agui.Content, tokens int64) agui.Content {
	if c.IsText() {
		return agui.TextContent(CutMiddle(c.Text(), tokens))
	}
	all := []agui.ContentPart{agui.TextPart(CutMiddle(c.Text(), tokens))}
	for _, p := range c.Parts() {
		if p.Type != agui.PartText {
			all = append(all, p)
		}
	}
	return agui.PartsContent(all)
}

// CutMiddle keeps the beginning and the end of a text, so many tokens together, and says in between
// how many bytes are missing. A text that fits is returned unchanged.
func CutMiddle(s string, tokens int64) string {
	if TextTokens(s) <= tokens {
		return s
	}
	head := prefixOf(s, tokens/2)
	tail := len(s) - suffixOf(s[head:], tokens/2)
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", s[:head], tail-head, s[tail:])
}

// prefixOf returns how many bytes at the beginning of a text are at most so many tokens. It never
// cuts a character.
func prefixOf(s string, tokens int64) int {
	left := tokens * asciiPerToken
	for i, r := range s {
		if left -= weight(r); left < 0 {
			return i
		}
	}
	return len(s)
}

// suffixOf returns how many bytes at the end of a text are at most so many tokens.
func suffixOf(s string, tokens int64) int {
	runes := []rune(s)
	left, n := tokens*asciiPerToken, 0
	for i := len(runes) - 1; i >= 0; i-- {
		if left -= weight(runes[i]); left < 0 {
			break
		}
		n += len(string(runes[i]))
	}
	return n
}

// weight returns how many quarters of a token a character takes.
func weight(r rune) int64 {
	if r < 0x80 {
		return 1
	}
	return asciiPerToken
}
