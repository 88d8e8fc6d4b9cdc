package console

// testViews: a person saves a filter as a view, which stays after a reload, follows the approvals,
// and can be deleted.
func testViews(o office) {
	first := o.request("thread-desk", "Work out 1+1")
	second := o.requestOf("ada", "panel", "thread-panel", "Work out 2+2")
	const views = "nav[aria-label=Views]"
	tab := o.signIn("bob", "/console/inbox")
	tab.Await(views+" [aria-current=page]", "All2")
	tab.AwaitGone("role=button[name='Save view']")
	tab.Click("[class*=filters] button >> nth=0")
	tab.Click("[role=option]:has-text('panel')")
	tab.Await("[aria-label=Approvals] li", "2+2")
	tab.AwaitGone("[aria-label=Approvals] li:has-text('1+1')")
	tab.Click("role=button[name='Save view']")
	tab.Await("[role=dialog]", "Save the filter as a view")
	tab.WantAccessible()
	tab.Write("The panel")
	tab.Press("Enter")
	tab.Await(views+" [aria-current=page]", "The panel1")
	tab.Await("role=status", "Saved the view The panel")

	tab.Click(views + " >> text=Mine")
	tab.Await("[aria-label=Approvals] li", "1+1")
	tab.Reload()
	tab.Click(views + " >> text=The panel")
	tab.Await(views+" [aria-current=page]", "The panel1")
	tab.AwaitGone("[aria-label=Approvals] li:has-text('1+1')")
	o.decide("alice", second, "reject")
	tab.Await(views+" [aria-current=page]", "The panel0")
	tab.Await("main", "No approval fits")
	tab.Click("role=button[name='Delete the view The panel']")
	tab.AwaitGone(views + " >> text=The panel")
	tab.Click("main >> text=Show all 1")
	tab.Await("[aria-label=Approvals] li", "1+1")
	o.decide("alice", first, "reject")
}
