package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestInbox: alice decides three approvals by keys alone. Two people decide at once, one by one and
// in bulk, and the second one sees who has decided what. A decided approval has its own page. A
// notification opens its approval.
func TestInbox(t *testing.T) {
	t.Parallel()
	o := openOffices(t, "default")["default"]
	approvals := make([]string, 7)
	for i := range approvals {
		approvals[i] = o.request(fmt.Sprint("thread-", i), fmt.Sprintf("Work out 1+%d", i))
	}
	question := o.request("thread-question", "Ask me")

	alice := o.signIn("alice", "/console/inbox?assignee=me")
	o.triage(alice, approvals)
	bob := o.signIn("bob", page(approvals[3]))
	o.collide(bob, approvals[3:5])
	o.decideAll(bob, approvals[5:7])
	o.answer(bob, question)
	o.notify(bob)

	alice.Evaluate("history.pushState(null, '', '"+page(approvals[2])+"')", nil)
	alice.Reload()
	alice.Await("[aria-label='Recorded decision']", "alice rejected it")
	alice.Await("blockquote", "Too much")
	alice.Await("[aria-label=Conversation]", "You may decide, but not read the thread")
	alice.WantAccessible()
}

// triage approves the first approval, edits the second one and rejects the third one, without a
// pointer.
func (o office) triage(tab *kit.Tab, approvals []string) {
	t := o.t
	t.Helper()
	tab.Await("li", "expression: 1+6")
	tab.Press("j")
	tab.Await("h2", "calculate")
	tab.WantAccessible()
	tab.Press("a")
	tab.Await("[aria-label='Recorded decision']", "alice approved it")
	tab.Press("j", "e")
	tab.Await("text=Edited arguments", "")
	tab.Press("Control+a")
	tab.Write(`{"expression": `)
	tab.Await("text=This is not JSON", "")
	tab.Write(`"40+2"}`)
	tab.Await("del", "1+1")
	tab.Await("ins", "40+2")
	tab.WantAccessible()
	tab.Press("Control+Enter")
	tab.Await("[aria-label='Recorded decision']", "alice approved it with changes")
	tab.Await("[aria-label=Call]", "40+2")
	tab.AwaitGone("[aria-label=Details] dt:has-text('Expires')")
	tab.Press("j", "r")
	tab.Await("label", "Reason")
	tab.Write("Too much")
	tab.WantAccessible()
	tab.Press("Enter")
	tab.Await("[aria-label='Recorded decision']", "alice rejected it")
	tab.Await("[aria-label='Recorded decision']", "Too much")
	tab.AwaitGone("text=You rejected it.") // the record says so
	for i, want := range []string{`approve map[] ""`, `edit map[expression:40+2] ""`, `reject map[] "Too much"`} {
		o.wantDecision(approvals[i], want)
	}
}

// collide decides what another person decides at the same time: while this person enters a reason,
// and just before the decision arrives.
func (o office) collide(tab *kit.Tab, approvals []string) {
	t := o.t
	t.Helper()
	tab.Await("h2", "calculate")
	tab.Await("[aria-label=Approvals] a", "desk · Work out 1+4")
	tab.Press("r")
	tab.Await("label", "Reason")
	tab.Write("Wait for the invoice")
	o.decide("alice", approvals[0], "approve")
	tab.Await("[role=alert]", "alice approved it")
	tab.Press("Escape", "j")
	tab.Await("a[aria-current=true]", "1+4")
	// The page has not heard of alice's decision when it sends the one of bob.
	tab.Evaluate(fmt.Sprintf(`{
		const send = WebSocket.prototype.send;
		WebSocket.prototype.send = function (data) {
			if (String(data).includes('"reject"')) {
				WebSocket.prototype.send = send;
				const request = new XMLHttpRequest();
				request.open("POST", "/v1%s", false);
				request.setRequestHeader("Authorization", "Bearer %s");
				request.setRequestHeader("Content-Type", "application/json");
				request.send('{"decision": "approve"}');
			}
			return send.call(this, data);
		};
	}`, approvals[1], o.keyOf("alice")), nil)
	tab.Press("r")
	tab.Await("label", "Reason")
	tab.Write("No invoice")
	tab.Press("Enter")
	tab.Await("[role=alert]", "alice approved it")
	tab.Await("[role=alert]", "changed nothing")
	tab.Click("summary >> text=What you entered")
	tab.Await("details", "No invoice")
	tab.WantAccessible()
}

// decideAll decides two approvals in bulk, of which alice has decided the first one.
func (o office) decideAll(tab *kit.Tab, approvals []string) {
	t := o.t
	t.Helper()
	tab.Press("j", "x", "j", "x")
	tab.Await("[role=toolbar]", "2 selected")
	tab.Press("A")
	tab.Await("[role=dialog]", "Approve 2 calls?")
	tab.Await("[role=dialog] [aria-label='Selected approvals']", "Work out 1+6") // the title of its thread
	tab.WantAccessible()
	o.decide("alice", approvals[0], "reject")
	tab.Press("Enter")
	tab.Await("[role=dialog] tr", "alice")
	text := tab.Await("[role=dialog] h2", "Results")
	for _, want := range []string{"rejected before, so yours changed nothing: alice", "approved"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("results of the batch: got\n%s\nwant %q", text, want)
		}
	}
	tab.WantAccessible()
	tab.Press("Enter")
	tab.AwaitGone("[role=dialog]")
}

// answer answers a question.
func (o office) answer(tab *kit.Tab, question string) {
	o.t.Helper()
	tab.Press("j")
	tab.Await("h2", "Which color?")
	tab.Press("a")
	tab.Write("blue")
	tab.WantAccessible()
	tab.Press("Enter")
	tab.Await("[aria-label='Recorded decision']", "bob answered it")
}

// notify turns notifications on. A new approval notifies while the page is hidden, and a click on
// the notification opens it.
func (o office) notify(tab *kit.Tab) {
	t := o.t
	t.Helper()
	tab.Grant("notifications")
	tab.Press("n")
	tab.Await("button[aria-pressed=true]", "Notifications on")
	tab.Evaluate(`{
		window.shown = [];
		window.Notification = class extends Notification { constructor(...all) { super(...all); window.shown.push(this); } };
		Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
	}`, nil)
	approval := o.request("thread-new", "Work out 7*6")
	var shown string
	tab.Evaluate(`new Promise((resolve) => {
		const timer = setInterval(() => {
			if (window.shown.length === 0) return;
			clearInterval(timer);
			const [{ title, body }] = window.shown;
			window.shown[0].onclick();
			resolve(title + " " + body + " " + document.title);
		}, 20);
	})`, &shown)
	if want := "calculate expression: 7*6 (1) Inbox · Perdure"; shown != want {
		t.Errorf("notification and title: got %q, want %q", shown, want)
	}
	tab.Await("a[aria-current=true]", "7*6")
	var path string
	if tab.Evaluate("location.pathname", &path); path != page(approval) {
		t.Errorf("the notification opens %s, want %s", path, page(approval))
	}
	tab.Await("[aria-label=Conversation]", "this call")
	tab.Await("[aria-label=History]", "Opened")
	tab.Await("[aria-label=Approvals] a", "desk · Work out 7*6")
	// What shows the time differs between runs. The page writes a new time into the text of the old one.
	tab.Evaluate(`document.querySelectorAll("main time").forEach((time) => {
		time.textContent = "then";
		Object.defineProperty(time.firstChild, "nodeValue", { set() {} });
	})`, nil)
	tab.WantAria("main", "inbox", path[strings.LastIndex(path, "/")+1:], "int_…")
	o.decide("alice", approval, "reject") // so that the thread ends
}
