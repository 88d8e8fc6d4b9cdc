package console

import (
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const drafterAgent = `name: console-drafter
description: Drafts letters.
model: scripted/console-drafter
tools: [calculate]
instructions: Write in few words.
`

// TestCompletion: the editor completes keys by the schema of definitions, with their meaning, and
// names of agents and tools that the deployment has. The keyboard chooses.
func TestCompletion(t *testing.T) {
	t.Parallel()
	publish(t, "console-drafter", drafterAgent)
	publish(t, "console-drafters-clerk", "name: console-drafters-clerk\nmodel: scripted/console-drafters-clerk\ntools: [current_time]\n")
	tab := kit.NewBrowser(t).OpenWithClock(kit.Shared.URL("/console/agents/console-drafter/definition?edit"))
	accept := func() {
		tab.Forward(time.Second) // the editor ignores a key directly after the list has opened
		tab.Press("Enter")
		tab.AwaitGone("[role=listbox]")
	}
	const editor, options = ".cm-content[aria-readonly=false]", "[role=listbox] [role=option]"
	tab.Await(editor, "Write in few words.")
	tab.Click(editor)
	tab.Press("Control+End")
	typeKeys(tab, "lim")
	tab.Await(options, "limits")
	tab.Await(".cm-completionInfo", "")
	tab.WantAccessible()
	accept()
	tab.Await(editor, "limits: ")
	tab.Press("Enter")
	typeKeys(tab, "  turn")
	tab.Await(options, "turns")
	accept()
	tab.Await(editor, "turns: ")
	pasteHere(tab, "name: console-drafter\nmodel: scripted/console-drafter\ntools: [calculate, ")
	tab.Press("Control+End")
	typeKeys(tab, "agent:console-drafters")
	tab.Await(options, "agent:console-drafters-clerk")
	accept()
	tab.Await(editor, "agent:console-drafters-clerk")
	typeKeys(tab, ", current")
	tab.Await(options, "current_time")
}

// typeKeys presses the keys of a text, as a person does.
func typeKeys(tab *kit.Tab, text string) {
	for _, key := range text {
		tab.Press(string(key))
	}
}

// TestDiscardDraft: a user keeps a draft when the dialog is dismissed, and gets the published text
// back after discarding it.
func TestDiscardDraft(t *testing.T) {
	t.Parallel()
	publish(t, "console-discarded", "name: console-discarded\nmodel: scripted/console-discarded\ninstructions: Keep this.\n")
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents/console-discarded/definition?edit"))
	const editor = ".cm-content[aria-readonly=false]"
	tab.Await(editor, "Keep this.")
	paste(tab, editor, "name: console-discarded\nmodel: scripted/console-discarded\ninstructions: Lose this.\n")
	tab.Await("main", "Draft, begun from")
	tab.Click("role=button[name='Discard changes …']")
	tab.Await("[role=dialog]", "Discard the changes?")
	tab.WantAccessible()
	tab.Press("Escape")
	tab.AwaitGone("[role=dialog]")
	tab.Await(editor, "Lose this.")
	tab.Click("role=button[name='Discard changes …']")
	tab.Click("[role=dialog] >> role=button[name='Discard']")
	tab.AwaitGone("[role=dialog]")
	tab.Await(".cm-content[aria-readonly=true]", "Keep this.")
	tab.Reload()
	tab.Await(".cm-content[aria-readonly=true]", "Keep this.")
}
