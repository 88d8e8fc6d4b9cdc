package console

import (
	"github.com/perdure/perdure/e2e/kit"
)

// testRetry reads a run whose tool is unavailable: the page tells what is attempted again and why.
// The user cancels it.
func testRetry(tab *kit.Tab) {
	const notice = "[aria-label='Attempted again']"
	tab.Await("h1 + [data-status=running]", "running")
	tab.Await(notice, "The tool call “stuck” fails, and is attempted again")
	tab.Await(notice, "Failing since")
	tab.WantAccessible()
	tab.Click("h1 >> xpath=preceding::a[contains(@href, '/threads/')][1]")
	tab.Await("p[data-kind=problem]", "fails, and is attempted again (attempt")
	tab.WantAccessible()
	tab.Click("p[data-kind=problem] >> text=Find out why")
	tab.Click(notice + " >> text=Show the attempts")
	tab.Await("aside header", "retrying")
	tab.Await("aside", "tool_unavailable")
	tab.Click("main header >> role=button[name=Cancel]")
	tab.Await("[role=dialog]", "Cancel the run?")
	tab.WantAccessible()
	tab.Click("[role=dialog] >> role=button[name='Keep it running']")
	tab.AwaitGone("[role=dialog]")
	tab.Await("h1 + [data-status=running]", "running")
	tab.Click("main header >> role=button[name=Cancel]")
	tab.Click("[role=dialog] >> role=button[name='Cancel the run']")
	tab.AwaitGone("[role=dialog]")
	tab.Await("h1 + [data-status=cancelled]", "cancelled")
	tab.AwaitGone(notice)
}
