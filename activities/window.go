package activities

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/stream/snapshot"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
)

// window is the part of a conversation that a model is told. What it leaves out are whole groups, the oldest first:
// no call without its results. The system's messages, what the user has said last and the newest group always stay.
type window struct {
	groups []group
	room   int64 // tokens
	first  int   // groups at the beginning that are to be kept
	told   *snapshot.Entry
}

// group is what stands or falls together: a message; or an answer, the thoughts before it and the results of its calls.
type group struct {
	entries []snapshot.Entry
	fixed   bool // is never left out
	kept    bool // is left out last
	out     bool
}

func newWindow(entries []snapshot.Entry, room int64) *window {
	return &window{groups: groupsOf(entries), room: max(room, 1)}
}

// groupsOf puts results behind their calls and thoughts to their answers. Activities are for people.
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

// What is to be kept may take these parts of the window. If it took all of it, each turn would have to make room anew.
const (
	firstShare = 4
	lastShare  = 2
)

// keep marks what stays.
func (w *window) keep(k agents.Keep) {
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
		g.fixed = g.fixed || seen == 0 && g.messages() > 0 || !user && g.says(agui.RoleUser)
		user = user || g.says(agui.RoleUser)
		seen += g.messages()
	}
}

// messages counts those that people would.
func (g *group) messages() int {
	n := 0
	for _, e := range g.entries {
		if r := e.Message.Role; r == agui.RoleUser || r == agui.RoleAssistant || r == agui.RoleTool {
			n++
		}
	}
	return n
}

func (g *group) says(r agui.Role) bool {
	return slices.ContainsFunc(g.entries, func(e snapshot.Entry) bool { return e.Message.Role == r })
}

func (g *group) tokens() int64 {
	var n int64
	for _, e := range g.entries {
		n += entryTokens(e)
	}
	return n
}

// tokens estimates what the window has.
func (w *window) tokens() int64 {
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

// over is how much has to go.
func (w *window) over() int64 { return max(0, w.tokens()-w.room) }

// A result that is cut keeps at least minResult tokens; one of more than a resultShare of the window is cut first.
const (
	minResult   = 250
	resultShare = 4
)

// cutResults cuts results of tools that are large in the middle, to a part of the window each.
func (w *window) cutResults(share int64) {
	limit := max(minResult, w.room/share)
	for i := range w.groups {
		g := &w.groups[i]
		for j, e := range g.entries {
			if g.out || e.Message.Role != agui.RoleTool || textTokens(e.Message.Content.Text()) <= limit {
				continue
			}
			g.entries = slices.Clone(g.entries)
			g.entries[j].Message.Content = cutContent(e.Message.Content, limit)
		}
	}
}

// leaveOut takes out groups, the oldest first, until so many tokens have gone.
func (w *window) leaveOut(tokens int64, may func(*group) bool) {
	for i := range w.groups {
		if g := &w.groups[i]; tokens > 0 && !g.out && !g.fixed && may(g) {
			g.out = true
			tokens -= g.tokens()
		}
	}
}

func notKept(g *group) bool { return !g.kept }
func anyGroup(*group) bool  { return true }

// trimSteps is into how many steps the room is divided: what is left out grows a step at a time, so that models find
// the beginning of what they are sent in their caches for some turns.
const trimSteps = 4

// trim leaves out what there is no room for.
func (w *window) trim() {
	if over := w.over(); over > 0 {
		step := max(1, w.room/trimSteps)
		w.leaveOut((over+step-1)/step*step, notKept)
	}
	w.squeeze()
}

// squeeze is what is left to do where there still is too much.
func (w *window) squeeze() {
	if w.over() > 0 {
		w.cutResults(resultShare * resultShare)
	}
	w.leaveOut(w.over(), anyGroup)
}

// entries are what the model is sent.
func (w *window) entries() []snapshot.Entry {
	var entries []snapshot.Entry
	told := false
	for i := range w.groups {
		if !told && w.told != nil && i >= w.first {
			entries, told = append(entries, *w.told), true
		}
		if g := &w.groups[i]; !g.out {
			entries = append(entries, g.entries...)
		} else if !told && w.told == nil {
			entries, told = append(entries, saidToIt("left-out", leftOut)), true
		}
	}
	return entries
}

// leftOut is what a model is told in the place of messages.
const leftOut = "[Older messages of this conversation are left out here.]"

// cutContent cuts what is said in the middle; media stay.
func cutContent(c agui.Content, tokens int64) agui.Content {
	if c.IsText() {
		return agui.TextContent(cutMiddle(c.Text(), tokens))
	}
	all := []agui.ContentPart{agui.TextPart(cutMiddle(c.Text(), tokens))}
	for _, p := range c.Parts() {
		if p.Type != agui.PartText {
			all = append(all, p)
		}
	}
	return agui.PartsContent(all)
}

// cutMiddle keeps the beginning and the end of a text, in so many tokens, and says what is missing.
func cutMiddle(s string, tokens int64) string {
	if textTokens(s) <= tokens {
		return s
	}
	head := prefixOf(s, tokens/2)
	tail := len(s) - suffixOf(s[head:], tokens/2)
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", s[:head], tail-head, s[tail:])
}

// prefixOf is how many bytes of a text's beginning are so many tokens.
func prefixOf(s string, tokens int64) int {
	left := tokens * asciiPerToken
	for i, r := range s {
		if left -= weight(r); left < 0 {
			return i
		}
	}
	return len(s)
}

// suffixOf is the same of its end.
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

// weight is a character's in quarters of a token.
func weight(r rune) int64 {
	if r < 0x80 {
		return 1
	}
	return asciiPerToken
}
