package console

import (
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// testOffline: a page has no network for longer than its client tries to connect. Meanwhile its run
// ends, and another one begins elsewhere. Then the page continues by itself, shows both, and says so.
func testOffline(t *testing.T, p *kit.Perdure) {
	b := kit.NewBrowser(t)
	tab := b.OpenWithClock(p.URL("/console/chat/stepper"), "Failed to load resource", "WebSocket connection to")
	say(tab, "Count")
	tab.Await("[data-kind=text]", "n3 ")
	thread := threadOf(tab)
	tab.SetOffline(true)
	tab.Await(line, "You are offline. Nothing is lost")
	tab.WantAccessible()

	elsewhere := kit.OpenTab(t, p.URL("/console/threads/"+thread))
	elsewhere.Await("[data-kind=text]", "The end is 2.")
	say(elsewhere, "Another")
	elsewhere.Await("[data-kind=text]", "I am short.")
	for range 10 { // a timer fires at most once when the clock moves
		tab.Forward(time.Minute)
	}
	tab.Await(line, "You are offline. Nothing is lost")
	tab.Await("[data-kind=text]", "n3 ")
	tab.AwaitGone(transcript + " [role=alert]") // the run has not failed

	tab.SetOffline(false)
	tab.Await("[data-kind=text]", "I am short.")
	tab.Await(line, "Continued where it was.")
	var here, there []string
	const shown = "[...document.querySelectorAll('" + transcript + " [data-kind]')].map((entry) => entry.innerText)"
	tab.Evaluate(shown, &here)
	elsewhere.Evaluate(shown, &there)
	wantSame(t, "entries after the time without a network", here, there)
}
