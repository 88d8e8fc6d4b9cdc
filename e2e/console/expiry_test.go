package console

import (
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// testExpiry: the page counts the time until an approval escalates and until it expires, and shows
// both when they happen.
func testExpiry(o office) {
	o.t.Run("countdown", func(*testing.T) { o.countDown() })
	// Both pages are ready before the short time of the approval begins.
	alice, bob := o.signIn("alice", "/console/inbox"), o.signIn("bob", "/console/inbox")
	approval := o.requestOf("ada", "brief", "thread-brief", "Work out 1+1")
	for _, shown := range []*kit.Tab{alice, bob} {
		shown.Evaluate("history.pushState(null, '', '"+page(approval)+"')", nil)
	}
	alice.Await("[aria-label=Details]", "Once: more people may decide")
	for _, shown := range []*kit.Tab{alice, bob} {
		shown.Await("header [data-status=expired]", "expired")
		shown.Await("[aria-label=Approvals] [data-status=expired]", "expired")
		shown.Await("[aria-label='Recorded decision']", "It has expired")
		shown.Await("role=status", "The approval has expired")
		shown.AwaitGone("header time:has-text(' in ')")
		shown.AwaitGone("role=button[name=/^Approve/]")
		shown.WantAccessible()
	}
}

// countDown reads the times of an approval that has hours left, while the clock of the page moves.
func (o office) countDown() {
	approval := o.requestOf("ada", "patient", "thread-patient", "Work out 2+2")
	tab := kit.NewBrowser(o.t).OpenWithClock(o.URL(page(approval)), "403 (Forbidden)", "WebSocket connection to")
	o.enter(tab, "alice")
	tab.Await("header time", "escalates in")
	tab.Await("header time", "expires in")
	tab.Await("[aria-label=Approvals] time", "expires in")
	tab.Forward(time.Hour)
	tab.Await("header time", "escalates now")
	tab.Await("header time", "expires in")
	tab.Forward(time.Hour)
	tab.Await("header time", "expires now")
	o.decide("alice", approval, "reject")
	tab.AwaitGone("header time:has-text('now')")
}
