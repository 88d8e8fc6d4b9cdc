package agents_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
)

const withApprovals = `
name: shop
model: test/m
tools: [issue_refund, get_order, "mcp:shop/*"]
approvals:
  - tools: [issue_refund]
    when: args.amount > 50
    expires: 24h
    onExpiry: skip
  - {tools: ["delete_*", "mcp:shop/pay_*"]}
`

func TestWhichCallsArePeoplesToDecide(t *testing.T) {
	t.Parallel()
	d, err := agents.Parse("shop.yaml", []byte(withApprovals))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = agents.Decode(encoded); err != nil {
		t.Fatal(err)
	}
	if a := d.Approvals[0]; a.Expires != 24*time.Hour || a.OnExpiry != agents.OnExpirySkip {
		t.Errorf("the rule is %+v", a)
	}
	for call, want := range map[string]int{
		`issue_refund {"amount": 51}`:    0,
		`issue_refund {"amount": 50.0}`:  -1,
		`issue_refund {"amount": "99"}`:  0, // nothing slips through a condition that fails
		`issue_refund {}`:                0,
		`issue_refund {"amount": 1`:      0,
		`get_order {"amount": 99}`:       -1,
		`delete_order {}`:                1,
		`undelete_order {"amount": 100}`: -1,
		`shop_pay_all {}`:                1,
		`shop_paid {}`:                   -1,
		`pay_all {}`:                     -1,
	} {
		tool, args, _ := strings.Cut(call, " ")
		if got := d.Asks(agents.ProposedCall{Agent: "shop", Tool: tool, Args: json.RawMessage(args)}); got != want {
			t.Errorf("%s: rule %d, want %d", call, got, want)
		}
	}
}

func TestConditionsSeeMoreThanArguments(t *testing.T) {
	t.Parallel()
	call := agents.ProposedCall{Agent: "shop", Tool: "pay", Args: json.RawMessage(`{"to":"a"}`), State: json.RawMessage(`{"vip":true}`), Input: json.RawMessage(`{"context":[]}`)}
	for when, want := range map[string]int{
		`state.vip && agent == "shop" && tool.startsWith("p") && size(input.context) == 0`: 0,
		`!state.vip`: -1, `has(args.to)`: 0, `args.to in ["b"]`: -1,
		// An endless condition comes to an end, and asks.
		`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, true))))) && false`: 0,
	} {
		d := &agents.Definition{Name: "shop", Model: "test/m", Tools: []string{"pay"}, Approvals: []agents.Approval{{Tools: []string{"pay"}, When: when}}}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if got := d.Asks(call); got != want {
			t.Errorf("%s: rule %d, want %d", when, got, want)
		}
	}
}

func TestApprovalsThatCannotBe(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"{tools: []}":                                  "approvals[0].tools must name 1 to 64",
		"{when: args.a}":                               "approvals[0].tools is missing",
		"{tools: ['a b']}":                             `must be a tool's name`,
		"{tools: [a], when: 'args.'}":                  "approvals[0].when is no condition: 1:",
		"{tools: [a], when: 'args.a + '}":              "approvals[0].when is no condition: 1:",
		"{tools: [a], when: 'nobody == 1'}":            "undeclared reference to 'nobody'",
		"{tools: [a], when: '1 + 1'}":                  "is a int, not true or false",
		"{tools: [a], expires: -1s}":                   "approvals[0].expires",
		"{tools: [a], expires: 1h, onExpiry: explode}": "must be reject, skip or fail",
		"{tools: [a], onExpiry: reject}":               "approvals[0].onExpiry needs expires",
		"{tools: [a], approver: x}":                    `unknown key "approvals[0].approver"`,
		"{tools: [b]}":                                 `"b" is none of the agent's tools`,
		"x":                                            "approvals[0] must have keys",
		"{tools: [a], when: '" + strings.Repeat("x", 5000) + "'}": "must be at most 4096 bytes",
	} {
		_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: t/m\ntools: ['a*']\napprovals:\n  - "+rule+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", rule, err, want)
		}
	}
}
