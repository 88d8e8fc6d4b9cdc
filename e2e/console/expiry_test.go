package console

import "github.com/perdure/perdure/e2e/kit"

// testExpiry: the page counts the time until an approval escalates and until it expires, and shows
// both when they happen.
func testExpiry(o office) {
	approval := o.requestOf("ada", "brief", "thread-brief", "Work out 1+1")
	alice := o.signIn("alice", page(approval))
	alice.Await("header time", "escalates in")
	alice.Await("header time", "expires in")
	alice.Await("[aria-label=Approvals] time", "expires in")
	alice.Await("role=button[name=/^Approve/]", "")
	bob := o.signIn("bob", page(approval))
	alice.Await("[aria-label=Details]", "Once: more people may decide")
	alice.AwaitGone("header time:has-text('escalates')")
	bob.Await("role=button[name=/^Approve/]", "")
	for _, shown := range []*kit.Tab{alice, bob} {
		shown.Await("header [data-status=expired]", "expired")
		shown.Await("[aria-label=Approvals] [data-status=expired]", "expired")
		shown.Await("[aria-label='Recorded decision']", "It has expired")
		shown.Await("role=status", "The approval has expired")
		shown.AwaitGone("role=button[name=/^Approve/]")
		shown.WantAccessible()
	}
}
