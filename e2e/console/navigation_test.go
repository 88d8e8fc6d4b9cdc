package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestNavigation: every place of the navigation can be reached by link and by key, has a heading of
// its own, and is accessible. The list of shortcuts opens by key, and turns single keys off.
func TestNavigation(t *testing.T) {
	t.Parallel()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/"))
	tab.Await("h1", "")
	for _, place := range []struct{ label, key, path string }{
		{"Inbox", "i", "/console/inbox"},
		{"Waiting", "w", "/console/waits"},
		{"Threads", "t", "/console/threads"},
		{"Agents", "a", "/console/agents"},
		{"Schedules", "s", "/console/schedules"},
		{"Usage", "u", "/console/usage"},
		{"System", "y", "/console/system"},
		{"Chat", "c", "/console"},
	} {
		tab.Press("g", place.key)
		tab.Await("nav [aria-current=page]", place.label)
		tab.Await("h1", "")
		var path string
		if tab.Evaluate("location.pathname.replace(/\\/$/, '')", &path); path != place.path {
			t.Errorf("g %s leads to %s, want %s", place.key, path, place.path)
		}
		tab.WantAccessible()
	}
	tab.WantAria("header", "navigation")
	tab.Press("?")
	tab.Await("[role=dialog]", "Go to Inbox")
	tab.WantAccessible()
	tab.Click("text=Use shortcuts")
	tab.Press("Escape")
	tab.AwaitGone("[role=dialog]")
	tab.Press("g", "i")
	tab.Click("nav >> text=Threads") // the keys had no effect, so this is the first navigation
	tab.Await("nav [aria-current=page]", "Threads")
	var visited int
	if tab.Evaluate("history.length", &visited); visited > 11 {
		t.Errorf("keys had an effect while they were off: %d entries in the history", visited)
	}
}
