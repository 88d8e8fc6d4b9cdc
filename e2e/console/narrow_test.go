package console

// testNarrow: on a page of 390 pixels the inbox is one column: the list, or an approval with a way
// back. Nothing is cut off.
func testNarrow(o office) {
	approval := o.requestOf("ada", "panel", "thread-narrow", "Work out 12345678901234567890123456789012345678901234567890+1")
	o.decide("alice", approval, "approve")
	tab := o.signIn("bob", "/console/inbox")
	tab.Resize(390, 844)
	tab.Await("[aria-label=Approvals] li", "1/2")
	o.wantNoOverflow(tab)
	tab.WantAccessible()
	tab.Click("[aria-label=Approvals] a")
	tab.Await("[aria-label=Votes] li", "alice approved")
	tab.AwaitGone("[aria-label=Approvals]")
	o.wantNoOverflow(tab)
	tab.WantAccessible()
	tab.Click("role=button[name=/^Reject/]")
	tab.Await("label", "Reason")
	o.wantNoOverflow(tab)
	tab.WantAccessible()
	tab.Write("Too large")
	tab.Press("Enter")
	tab.Await("[aria-label='Recorded decision']", "bob rejected it")
	tab.Click("text=← Inbox")
	tab.Await("main", "Nothing waits for a decision")
	o.wantNoOverflow(tab)
}
