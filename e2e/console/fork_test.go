package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// wantSame compares two lists of texts.
func wantSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// focusBack moves the focus back from the field of the message to a button, with the keyboard alone.
func focusBack(t *testing.T, tab *kit.Tab, button string) {
	t.Helper()
	tab.Await("role=group[name='Last message']", "") // the run has ended
	tab.Press("m")
	for range 12 {
		tab.Press("Shift+Tab")
		var text string
		if tab.Evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText.trim()", &text); text == button {
			return
		}
	}
	t.Fatalf("Shift+Tab from the message does not reach %q", button)
}

// testForks: without a pointer, a person has a message answered again, here and in a fork, and sends
// an edited message, here and in a fork. What a fork is for stands in the editor.
func testForks(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/echo"))
	say(tab, "Hello one")
	tab.Await("[data-kind=text]", "Hi one.")
	say(tab, "Hello two")
	tab.Await("[data-kind=text]", "Hi two.")
	first := threadOf(tab)

	focusBack(t, tab, "Answer again in a fork")
	tab.Press("Enter")
	tab.Await(transcript, "Forked from")
	tab.Await("[data-kind=text]", "Hi one.")
	tab.Await("[data-kind=text]", "Hi two.")
	tab.AwaitGone("text=earlier version")

	focusBack(t, tab, "Edit")
	tab.Press("Enter")
	tab.Await("textarea[aria-label='Edited message']", "")
	tab.WantAccessible()
	tab.Press("Escape")
	tab.Await("[aria-label='Edit the message']:focus", "")
	tab.Press("Enter", "Control+a")
	tab.Write("Hello three")
	tab.Press("Tab", "Tab", "Enter") // after Cancel
	tab.Await("[data-kind=text]", "Hi three.")
	tab.Await("[data-kind=text]", "Hi one.")
	tab.AwaitGone("text=Hi two.")

	// The first thread is as it was.
	tab.Evaluate("history.pushState(null, '', '/console/threads/"+first+"')", nil)
	tab.Await("[data-kind=text]", "Hi two.")
	focusBack(t, tab, "Answer again")
	tab.Press("Enter")
	tab.Await(transcript, "1 earlier version")
	tab.Await("role=button[name='Answer again']", "")
	// An earlier message can be edited, too. What follows it is replaced.
	focusBack(t, tab, "Edit the message") // of the last message
	tab.Evaluate("document.querySelector(`[aria-label='Edit the message']`).focus()", nil)
	tab.Press("Enter", "Control+a")
	tab.Write("Hello zero")
	tab.Press("Enter")
	tab.Await("[data-kind=text]", "Hi zero.")
	tab.AwaitGone("[data-kind=text]:has-text('Hi two.')")
}
