package console

// testKeys: g a in the inbox goes to the agents, however slowly it is typed, and never approves. The
// page shows that g waits for a second key. After that time, and after Escape, a approves. A key does
// not approve what has only just appeared. New approvals are announced, on all screens.
func testKeys(o office) {
	first := o.request("thread-first", "Work out 1+1")
	second := o.request("thread-second", "Work out 2+2")
	const prefix = "[role=group][aria-label='Keys after g']"
	tab := o.signIn("bob", page(first))
	tab.Await("role=button[name=/^Approve/]", "")
	// The time of a prefix passes when the test says so.
	tab.Evaluate(`{
		const { setTimeout } = window;
		window.setTimeout = (run, delay, ...more) => (delay === 3000 ? ((window.endPrefix = run), 0) : setTimeout(run, delay, ...more));
	}`, nil)
	tab.Press("g")
	tab.Await(prefix, "Go to Agents")
	tab.WantAccessible()
	tab.Press("a")
	tab.Await("h1", "Agents")
	tab.Evaluate("history.back()", nil)
	tab.Await("role=button[name=/^Approve/]", "")
	tab.Evaluate("performance.now = () => 1e9", nil) // it has been there for long
	tab.Press("g", "x", "g", "e", "g", "r")          // no such sequences
	tab.AwaitGone(prefix)
	tab.AwaitGone("label:has-text('Reason')")
	tab.AwaitGone("text=Edited arguments")
	tab.Press("g", "Escape")
	tab.AwaitGone(prefix)
	tab.Press("g")
	tab.Await(prefix, "")
	tab.Evaluate("window.endPrefix()", nil)
	tab.AwaitGone(prefix)
	tab.Press("a")
	tab.Await("[aria-label='Recorded decision']", "bob approved it")
	o.wantDecision(first, `approve map[] ""`)

	// The time of the page stands still: the second approval has only just appeared.
	tab.Press("j")
	tab.Await("[aria-label=Approvals] a[aria-current=true]", "2+2")
	tab.Await("role=button[name=/^Approve/]", "")
	tab.Press("a")
	tab.Await("[aria-label=Decision]", "Not approved: this has only just appeared. Press a again to approve it.")
	tab.WantAccessible()
	tab.Evaluate("performance.now = () => 2e9", nil)
	tab.Press("a")
	tab.Await("[aria-label='Recorded decision']", "bob approved it")
	o.wantDecision(second, `approve map[] ""`)

	tab.Press("g", "t")
	tab.Await("h1", "Threads")
	third := o.request("thread-third", "Work out 3+3")
	tab.Await("role=status", "1 new approval: calculate")
	o.decide("alice", third, "reject")
}
