package console

// testQuorum: two approvers must approve a call. A third user has contributed to the conversation,
// and may not decide. The page shows each of them the votes, and why they cannot decide. After an
// approver has voted and selected another approval, the page no longer lists the first one as
// theirs.
func testQuorum(o office) {
	approval := o.requestOf("cora", "panel", "thread-quorum", "Work out 6*7")
	other := o.requestOf("ada", "panel", "thread-other", "Work out 1+1")

	cora := o.signIn("cora", page(approval))
	cora.Await("p", "You have contributed to this conversation, so you may not decide.")
	cora.Await("[aria-label=Details] dd", "cora")
	cora.AwaitGone("role=button[name=/^Approve/]")
	cora.Press("a") // there is nothing that it decides
	cora.WantAccessible()

	alice := o.signIn("alice", page(approval)+"?assignee=me")
	alice.Await("[aria-label=Votes]", "Nobody has voted yet. 2 people must approve the same arguments.")
	alice.Click("role=button[name=/^Approve/]")
	alice.Await("[aria-label=Decision]", "Your vote counts. One more person must vote for the same arguments.")
	alice.Await("[aria-label=Votes]", "1 of 2 for the arguments of the model")
	alice.Await("[aria-label=Votes] li", "alice approved")
	alice.Await("p", "You have voted, and other people must vote too. You can still change your vote.")
	alice.Await("[aria-label=Approvals] li[data-decided]", "you voted")
	alice.WantAccessible()
	alice.Await("nav[aria-label=Views] [aria-current=page]", "Mine1")
	alice.Press("j", "k", "j")
	alice.Await("[aria-label=Approvals] a[aria-current=true]", "1+1")
	alice.AwaitGone("[aria-label=Approvals] li:has-text('6*7')")

	cora.Await("[aria-label=Votes] li", "alice approved")
	bob := o.signIn("bob", page(approval))
	bob.Await("[aria-label=Approvals] li:has-text('6*7')", "1/2")
	bob.Await("[aria-label=Votes]", "1 of 2")
	bob.Click("role=button[name=/^Approve/]")
	bob.Await("[aria-label='Recorded decision']", "bob approved it")
	cora.Await("role=status", "bob approved it")
	cora.Await("[aria-label='Recorded decision']", "bob approved it")
	bob.Await("[aria-label=History]", "Voted")
	bob.WantAccessible()
	o.decide("alice", other, "reject")
}
