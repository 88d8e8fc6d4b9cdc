package console

import (
	"os"
	"strings"
)

// testTokens: a person enters a wrong key, and sees that it was refused. When their key is revoked,
// the page says so, and continues where it was with another one.
func testTokens(o office) {
	approval := o.request("thread-tokens", "Work out 1+1")
	tab := o.open(page(approval))
	const field = "input[type=password]"
	tab.Type(field, "the-wrong-key")
	tab.Press("Enter")
	tab.Await("form", "The API refused this token.")
	tab.Await(field+":focus", "")
	tab.Await("role=status", "The API refused this token.")
	tab.WantAccessible()
	tab.Press("Control+a")
	tab.Write(o.keyOf("cora"))
	tab.AwaitGone("text=The API refused this token.")
	tab.Press("Enter")
	tab.Await("h2", "calculate")

	keys, err := os.ReadFile(o.keys)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(o.keys, []byte(strings.Replace(string(keys), o.keyOf("cora"), "another-key-of-cora-in-tokens", 1)), 0o600); err != nil {
		o.t.Fatal(err)
	}
	tab.Await("[role=alert]", "The API no longer accepts your token")
	tab.WantAccessible()
	o.enter(tab, "alice")
	tab.Await("h2", "calculate")
	o.decide("alice", approval, "reject")
}
