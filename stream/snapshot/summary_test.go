package snapshot

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// TestSummaryCoversItsMessages: a summary covers its messages only while they are unchanged and no
// message is removed or inserted.
func TestSummaryCoversItsMessages(t *testing.T) {
	t.Parallel()
	entry := func(id, sent, text string) Entry {
		return Entry{Message: agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}, Sent: sent}
	}
	note := entry("1/model", "", "what only the agent is asked")
	entries := []Entry{note, entry("a", "x", "a"), entry("b", "y", "b"), entry("c", "z", "c")}
	s := *Summarize(entries[:3])
	with := func(change func(e []Entry) []Entry) []Entry { return change(slices.Clone(entries)) }
	for _, tt := range []struct {
		name        string
		entries     []Entry
		wantCovered bool
	}{
		{"unchanged", entries, true},
		{"no later messages", entries[:3], true},
		{"the agent's message of a later step", with(func(e []Entry) []Entry { e[0].Message.ID = "2/model"; return e }), true},
		{"another message of the agent", with(func(e []Entry) []Entry { e[0].Message.Content = agui.TextContent("other"); return e }), false},
		{"cut", entries[:2], false},
		{"sent again", with(func(e []Entry) []Entry { e[1].Sent = "w"; return e }), false},
		{"a message inserted", with(func(e []Entry) []Entry { return slices.Insert(e, 1, entry("d", "d", "d")) }), false},
		{"another order", with(func(e []Entry) []Entry { e[1], e[2] = e[2], e[1]; return e }), false},
	} {
		if got := Covers(s, tt.entries); got != tt.wantCovered {
			t.Errorf("%s: Covers: got %t, want %t", tt.name, got, tt.wantCovered)
		}
	}
	if Covers(stream.Summary{}, entries) {
		t.Error("Covers of an empty summary = true, want false")
	}
}
