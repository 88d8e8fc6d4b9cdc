package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// testHandoffs: the conversation tells where another agent begins to answer, also after a reload.
func testHandoffs(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/door"))
	say(tab, "Hello Ada")
	tab.Await("[data-kind=handoff]", "echo answers now")
	tab.Await("[data-kind=text]", "Hi Ada.")
	tab.Reload()
	tab.Await("[data-kind=handoff]", "echo answers now")
	tab.AwaitGone("[data-kind=call]")
	tab.WantAccessible()
}
