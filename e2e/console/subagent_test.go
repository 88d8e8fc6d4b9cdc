package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// testSubagents: while a subagent of a subagent writes, the page shows its words in the calls of
// both, and a tree of their states. After a reload, the calls of those that have finished are closed,
// and still have their words.
func testSubagents(t *testing.T, p *kit.Perdure) {
	const (
		middle  = "[role=group][aria-label='Work of middle']"
		stepper = middle + " [role=group][aria-label='Work of stepper']"
		tree    = "[role=tabpanel]"
	)
	tab := kit.OpenTab(t, p.URL("/console/chat/lead"))
	say(tab, "Go")
	tab.Await(stepper+" [data-kind=text]", "n3 ")
	tab.Await(middle+" [data-kind=text]", "Another agent counts.")
	var working bool
	tab.Evaluate("!document.querySelector(`"+transcript+"`).innerText.includes('The middle is done.')", &working)
	if !working {
		t.Error("the text of the subagent was shown only after its end")
	}
	tab.Click("role=tab[name=/^Subagents/]")
	tab.Await(tree+" [class*=nested]:has-text('stepper') [data-status=running]", "running")
	tab.Reload()
	tab.Await("[data-kind=text]", "All is done.")
	tab.Await(tree+" [class*=nested]:has-text('stepper') [data-status=finished]", "finished")
	// The calls of subagents that have finished are closed, and open by keyboard.
	tab.AwaitGone(middle)
	tab.Click(tree + " >> role=button[name='middle']")
	tab.Press("Enter")
	tab.Await(middle, "The middle is done.")
	tab.Click(middle + " [data-kind=call] summary")
	tab.Await(stepper+" [data-kind=text]", lastNumber)
	tab.WantAccessible()
}
