package prompt

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// Window is the part of a conversation that fits the room of a model. It leaves out whole groups of
// messages, the oldest first: never a tool call without its result. System messages, the user's
// last message and the newest group always stay. A Window is used by one goroutine.
type Window struct {
	groups []group
	room   int64 // tokens
	first  int   // groups at the beginning that are to be kept
	told   *snapshot.Entry
}

// group is left out or kept as a whole: a message; or an answer with its reasoning and the results
// of its tool calls.
type group struct {
	entries []snapshot.Entry
	fixed   bool // is never left out
	kept    bool // is left out last
	out     bool
}

// NewWindow returns a window on a conversation, with room for so many tokens.
func NewWindow(entries []snapshot.Entry, room int64) *Window {
	return &Window{groups: groupsOf(entries), room: max(room, 1)}
}

// groupsOf groups results with their calls and reasoning with its answer. Models are not sent
// activities.
func groupsOf(entries []snapshot.Entry) []group {
	var groups []group
	byID, byCall := map[string]int{}, map[string]int{}
	var thoughts []snapshot.Entry // of an answer that comes
	for _, e := range entries {
		m := e.Message
		at, known := byCall[m.ToolCallID]
		if m.Role == agui.RoleReasoning {
			at, known = byID[e.AnswerID]
		}
		switch {
		case m.Role == agui.RoleActivity:
		case known && (m.Role == agui.RoleReasoning || m.Role == agui.RoleTool):
			groups[at].entries = append(groups[at].entries, e)
		case m.Role == agui.RoleReasoning:
			thoughts = append(thoughts, e)
		default:
			byID[m.ID] = len(groups)
			for _, c := range m.ToolCalls {
				byCall[c.ID] = len(groups)
			}
			groups = append(groups, group{entries: append(thoughts, e), fixed: m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper})
			thoughts = nil
		}
	}
	return groups
}

// Keep may take these shares of the room: otherwise each turn would have to make room again.
const (
	firstShare = 4
	lastShare  = 2
)

// Keep marks the groups that stay as long as there is room.
func (w *Window) Keep(k agents.Keep) {
	left := w.room / firstShare
	for i, seen := 0, 0; i < len(w.groups) && seen < k.First; i++ {
		if left -= w.groups[i].tokens(); left < 0 {
			break
		}
		w.groups[i].kept, w.first = true, i+1
		seen += w.groups[i].messages()
	}
	left = w.room / lastShare
	user := false
	for i, seen := len(w.groups)-1, 0; i >= 0; i-- {
		g := &w.groups[i]
		left -= g.tokens()
		g.kept = g.kept || seen < k.Last && left >= 0
		g.fixed = g.fixed || seen == 0 && g.messages() > 0 || !user && g.hasRole(agui.RoleUser)
		user = user || g.hasRole(agui.RoleUser)
		seen += g.messages()
	}
}

// messages counts the messages of users, assistants and tools.
func (g *group) messages() int {
	n := 0
	for _, e := range g.entries {
		if r := e.Message.Role; r == agui.RoleUser || r == agui.RoleAssistant || r == agui.RoleTool {
			n++
		}
	}
	return n
}

func (g *group) hasRole(r agui.Role) bool {
	return slices.ContainsFunc(g.entries, func(e snapshot.Entry) bool { return e.Message.Role == r })
}

func (g *group) tokens() int64 {
	var n int64
	for _, e := range g.entries {
		n += entryTokens(e)
	}
	return n
}

// tokens estimates the tokens of the groups that are not left out.
func (w *Window) tokens() int64 {
	var n int64
	if w.told != nil {
		n = entryTokens(*w.told)
	}
	for i := range w.groups {
		if !w.groups[i].out {
			n += w.groups[i].tokens()
		}
	}
	return n
}

// Over is by how many tokens the conversation exceeds the room.
func (w *Window) Over() int64 { return max(0, w.tokens()-w.room) }

// MinResult is how many tokens a cut result keeps at least. A result that takes more than one
// resultShare-th of the room is cut first.
const (
	MinResult   = 250
	resultShare = 4
)

// CutLargeResults cuts the middle out of tool results that take more than a quarter of the room.
func (w *Window) CutLargeResults() { w.cutResults(resultShare) }

// cutResults cuts the middle out of tool results that take more than a share of the room.
func (w *Window) cutResults(share int64) {
	limit := max(MinResult, w.room/share)
	for i := range w.groups {
		g := &w.groups[i]
		for j, e := range g.entries {
			if g.out || e.Message.Role != agui.RoleTool || TextTokens(e.Message.Content.Text()) <= limit {
				continue
			}
			g.entries = slices.Clone(g.entries)
			g.entries[j].Message.Content = cutContent(e.Message.Content, limit)
		}
	}
}

// leaveOut leaves out groups, the oldest first, until so many tokens are left out.
func (w *Window) leaveOut(tokens int64, may func(*group) bool) {
	for i := range w.groups {
		if g := &w.groups[i]; tokens > 0 && !g.out && !g.fixed && may(g) {
			g.out = true
			tokens -= g.tokens()
		}
	}
}

func isRemovable(g *group) bool { return !g.kept }
func anyGroup(*group) bool      { return true }

// trimSteps divides the room into steps. What is left out grows by a step at a time, so the
// beginning of the request stays the same for some turns, which providers cache.
const trimSteps = 4

// Trim leaves out the oldest groups until the rest fits.
func (w *Window) Trim() {
	if over := w.Over(); over > 0 {
		step := max(1, w.room/trimSteps)
		w.leaveOut((over+step-1)/step*step, isRemovable)
	}
	w.Squeeze()
}

// Squeeze cuts tool results further, and leaves out groups that Keep has marked, if the
// conversation still exceeds the room.
func (w *Window) Squeeze() {
	if w.Over() > 0 {
		w.cutResults(resultShare * resultShare)
	}
	w.leaveOut(w.Over(), anyGroup)
}

// Entries returns the messages that fit.
func (w *Window) Entries() []snapshot.Entry {
	var entries []snapshot.Entry
	told := false
	for i := range w.groups {
		if !told && w.told != nil && i >= w.first {
			entries, told = append(entries, *w.told), true
		}
		if g := &w.groups[i]; !g.out {
			entries = append(entries, g.entries...)
		} else if !told && w.told == nil {
			entries, told = append(entries, Private("left-out", leftOut)), true
		}
	}
	return entries
}

// Room is for how many tokens the window has room.
func (w *Window) Room() int64 { return w.room }

// Older returns the groups after those that are kept at the beginning: a summary may replace the
// first of them.
func (w *Window) Older() [][]snapshot.Entry {
	var older [][]snapshot.Entry
	for _, g := range w.groups[w.first:] {
		older = append(older, g.entries)
	}
	return older
}

// Replace puts a text in the place of the first of the older groups.
func (w *Window) Replace(count int, text string) {
	told := Private("summary", text)
	w.told = &told
	for i := range w.groups[w.first:][:count] {
		g := &w.groups[w.first+i]
		g.out = !g.fixed
	}
}

// Half returns how many of the older groups a new summary has to replace, if the first from of them
// have one, so that half of the room is free afterwards. It stops before a group that Keep has
// marked, and before the newest.
func (w *Window) Half(from int) int {
	groups := w.groups[w.first:]
	left := w.tokens() - w.room/2
	for i := from; i < len(groups); i++ {
		switch g := &groups[i]; {
		case g.kept || i == len(groups)-1 || left <= 0:
			return i
		case !g.fixed:
			left -= g.tokens()
		}
	}
	return len(groups)
}

// leftOut replaces the messages that are left out.
const leftOut = "[Older messages of this conversation are left out here.]"

// cutContent cuts the middle out of the text. Media stay.
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

// CutMiddle keeps the beginning and the end of a text, in so many tokens, and says how many bytes
// are missing.
func CutMiddle(s string, tokens int64) string {
	if TextTokens(s) <= tokens {
		return s
	}
	head := prefixOf(s, tokens/2)
	tail := len(s) - suffixOf(s[head:], tokens/2)
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", s[:head], tail-head, s[tail:])
}

// prefixOf returns how many bytes at the beginning of a text are so many tokens.
func prefixOf(s string, tokens int64) int {
	left := tokens * asciiPerToken
	for i, r := range s {
		if left -= weight(r); left < 0 {
			return i
		}
	}
	return len(s)
}

// suffixOf returns how many bytes at the end of a text are so many tokens.
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

// weight returns a character's in quarters of a token.
func weight(r rune) int64 {
	if r < 0x80 {
		return 1
	}
	return asciiPerToken
}
