package console

import (
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// testUnanswered: the server does not answer a decision. The page says so, sends it when the network
// is back, and keeps what was entered when it gives up. A browser that believes to have no network
// reaches a server on its own machine.
func testUnanswered(o office) {
	approval, other := o.request("thread-unanswered", "Work out 1+1"), o.request("thread-local", "Work out 2+2")
	tab := kit.NewBrowser(o.t).OpenWithClock(o.URL(page(approval)), "403 (Forbidden)", "Failed to load resource", "WebSocket connection to")
	o.enter(tab, "alice")
	const decision = "[aria-label=Decision]"
	tab.Await(decision, "Approve")
	tab.Forward(time.Second) // it has been there for long
	tab.SetOffline(true)
	giveUp := func() {
		tab.Await(decision, "You are offline. This is sent when you are back.")
		tab.WantAccessible()
		for range 10 { // a timer fires at most once when the clock moves
			tab.Forward(time.Minute)
		}
		tab.Await(decision+" [role=alert]", "The server does not answer.")
		tab.WantAccessible()
	}
	tab.Press("a", "e") // one decision at a time
	tab.AwaitGone("text=Edited arguments")
	giveUp()

	tab.Press("e", "Control+a")
	tab.Write(`{"expression": "40+2"}`)
	tab.Press("Control+Enter")
	giveUp()
	tab.Await("ins", "40+2")
	tab.Press("Control+Enter")
	tab.Await(decision, "You are offline. This is sent when you are back.")
	tab.SetOffline(false)
	tab.Await("[aria-label='Recorded decision']", "alice approved it with changes")
	o.wantDecision(approval, `edit map[expression:40+2] ""`)

	tab.Evaluate("window.dispatchEvent(new Event('offline'))", nil)
	tab.Press("j", "r", "Enter")
	tab.Await("[aria-label='Recorded decision']", "alice rejected it")
	o.wantDecision(other, `reject map[] ""`)
	tab.Press("g", "t")
	tab.Await("h1", "Threads")
	tab.Await("text=No threads yet", "") // that alice may read
}
