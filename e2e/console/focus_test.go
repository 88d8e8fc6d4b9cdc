package console

import "github.com/perdure/perdure/e2e/kit"

// testFocus: a user of the inbox types faster than the page draws. What a key opens keeps the focus,
// and receives what is typed next.
func testFocus(o office) {
	rejected, edited := o.request("thread-rejected", "Work out 1+1"), o.request("thread-edited", "Work out 2+2")
	question := o.request("thread-question", "Ask me")
	bob := o.signIn("bob", "/console/inbox")

	bob.Await("[aria-label=Approvals] li:nth-child(3)", "Which color?")
	withinFrame(bob, func() {
		bob.Click("[aria-label=Approvals] li:nth-child(1) a")
		bob.Press("r")
	})
	bob.Write("Too small")
	bob.Press("Enter")
	bob.Await("[aria-label='Recorded decision']", "bob rejected it")
	o.wantDecision(rejected, `reject map[] "Too small"`)

	withinFrame(bob, func() { bob.Press("j", "e") })
	bob.Press("Escape")
	bob.Await("[aria-label=Decision]:focus", "")
	bob.Press("e", "Control+a")
	bob.Write(`{"expression": "40+2"}`)
	bob.Press("Control+Enter")
	bob.Await("[aria-label='Recorded decision']", "bob approved it with changes")
	o.wantDecision(edited, `edit map[expression:40+2] ""`)

	withinFrame(bob, func() { bob.Press("j", "a") })
	bob.Write("blue")
	bob.Press("Enter")
	bob.Await("[aria-label='Recorded decision']", "bob answered it")
	o.wantDecision(question, `answer map[] ""`)
}

// withinFrame has the page draw its next frame after the function has returned.
func withinFrame(tab *kit.Tab, act func()) {
	tab.Evaluate(`{
		const { requestAnimationFrame } = window, held = [];
		window.requestAnimationFrame = (callback) => held.push(callback);
		window.draw = () => {
			window.requestAnimationFrame = requestAnimationFrame;
			return new Promise((drawn) => requestAnimationFrame((now) => {
				held.forEach((callback) => callback(now));
				drawn();
			}));
		};
	}`, nil)
	act()
	tab.Evaluate("window.draw()", nil)
}
