package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// testBranches: a reload shows the branches of a pipeline with the names and the words that they had
// while they ran.
func testBranches(t *testing.T, p *kit.Perdure) {
	const branch = "[data-kind=branch]"
	tab := kit.OpenTab(t, p.URL("/console/chat/spread"))
	say(tab, "Go")
	tab.Await("role=button[name='Answer again']", "")
	tab.Await(branch+":has-text('each/1') [data-status=finished]", "")
	var live, reloaded string
	const shown = "[...document.querySelectorAll('[data-kind=branch]')].map((element) => element.textContent).join('|')"
	tab.Evaluate(shown, &live)
	tab.Reload()
	tab.Await(branch, "each/0")
	tab.Await(branch, "each/1")
	if tab.Evaluate(shown, &reloaded); reloaded != live {
		t.Errorf("branches after a reload: got %q, want %q", reloaded, live)
	}
	tab.Click("role=tab[name=/^Subagents/]")
	tab.Await("[role=tabpanel]", "each/1")
	tab.Click(branch + ":has-text('each/1') summary")
	tab.Await(branch, "Hi Bo.")
	// An answer that is JSON is a line, which opens.
	tab.Await("[data-kind=text] details", "greeted: true")
	tab.Click("[data-kind=text] summary")
	tab.Await("[data-kind=text] details", "by")
	tab.WantAccessible()
}
