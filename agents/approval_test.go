package agents_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestRuleSelectsCallsForApprovers(t *testing.T) {
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
		t.Errorf("first rule = %+v, want it to expire after 24h with skip", a)
	}
	for call, want := range map[string]int{
		`issue_refund {"amount": 51}`:    0,
		`issue_refund {"amount": 50.0}`:  -1,
		`issue_refund {"amount": "99"}`:  0, // a condition that fails requires an approval
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
		if got := d.ApprovalRule(agents.ProposedCall{Agent: "shop", Tool: tool, Args: json.RawMessage(args)}); got != want {
			t.Errorf("%s: rule %d, want %d", call, got, want)
		}
	}
}

func TestConditionsReadStateAndInput(t *testing.T) {
	t.Parallel()
	call := agents.ProposedCall{Agent: "shop", Tool: "pay", Args: json.RawMessage(`{"to":"a"}`), State: json.RawMessage(`{"vip":true}`), Input: json.RawMessage(`{"context":[]}`)}
	for when, want := range map[string]int{
		`state.vip && agent == "shop" && tool.startsWith("p") && size(input.context) == 0`: 0,
		`!state.vip`: -1, `has(args.to)`: 0, `args.to in ["b"]`: -1,
		// An endless condition is stopped, and requires an approval.
		`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, true))))) && false`: 0,
	} {
		d := &agents.Definition{Name: "shop", Model: "test/m", Tools: []string{"pay"}, Approvals: []agents.Approval{{Tools: []string{"pay"}, When: when}}}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if got := d.ApprovalRule(call); got != want {
			t.Errorf("%s: rule %d, want %d", when, got, want)
		}
	}
}

func TestInvalidApprovalRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"{tools: []}":                                                         "approvals[0].tools must name 1 to 64",
		"{when: args.a}":                                                      "approvals[0].tools is missing",
		"{tools: ['a b']}":                                                    `must be a tool's name`,
		"{tools: [a], when: 'args.'}":                                         "approvals[0].when is not a valid condition: 1:",
		"{tools: [a], when: 'args.a + '}":                                     "approvals[0].when is not a valid condition: 1:",
		"{tools: [a], when: 'nobody == 1'}":                                   "undeclared reference to 'nobody'",
		"{tools: [a], when: '1 + 1'}":                                         "is a int, not true or false",
		"{tools: [a], expires: -1s}":                                          "approvals[0].expires",
		"{tools: [a], expires: 1h, onExpiry: explode}":                        "must be reject, skip, fail or escalate",
		"{tools: [a], onExpiry: reject}":                                      "approvals[0].onExpiry needs expires",
		"{tools: [a], approver: x}":                                           `unknown key "approvals[0].approver"`,
		"{tools: [b]}":                                                        `"b" is not one of the agent's tools`,
		"x":                                                                   "approvals[0] must have keys",
		"{tools: [a], approvers: finance}":                                    "approvals[0].approvers must be a list",
		"{tools: [a], approvers: [1]}":                                        "an entry of approvals[0].approvers must be text",
		"{tools: [a], approvers: ['role:']}":                                  `approvals[0].approvers: "role:" must be a subject, or role:`,
		"{tools: [a], approvers: [ann, ann]}":                                 `approvals[0].approvers: "ann" appears twice`,
		`{tools: [a], approvers: ["a\tb"]}`:                                   "must be a subject",
		"{tools: [a], quorum: 0}":                                             "approvals[0].quorum must be greater than zero",
		"{tools: [a], quorum: 9}":                                             "approvals[0].quorum must be 1 to 8",
		"{tools: [a], approvers: [ann], quorum: 2}":                           "approvals[0].quorum is 2, but the number of approvers is 1",
		"{tools: [a], notByRequester: 1}":                                     "approvals[0].notByRequester must be true or false",
		"{tools: [a], remind: 10ms}":                                          "approvals[0].remind must be at least 1s",
		"{tools: [a], escalate: x}":                                           "approvals[0].escalate must be a list",
		"{tools: [a], approvers: [ann], escalate: [x]}":                       "approvals[0].escalate[0] must have keys",
		"{tools: [a], escalate: [{after: 1h, to: [bob]}]}":                    "approvals[0].escalate needs approvers",
		"{tools: [a], approvers: [ann], escalate: [{to: [bob]}]}":             "approvals[0].escalate[0].after is missing",
		"{tools: [a], approvers: [ann], escalate: [{after: 1h}]}":             "approvals[0].escalate[0].to is missing",
		"{tools: [a], approvers: [ann], escalate: [{after: 1h, who: [bob]}]}": `unknown key "approvals[0].escalate[0].who"`,
		"{tools: [a], approvers: [ann], expires: 1h, escalate: [{after: 1h, to: [bob]}]}":              "approvals[0].escalate[0].after must be before the approval expires",
		"{tools: [a], approvers: [ann], escalate: [{after: 2h, to: [b]}, {after: 2h, to: [c]}]}":       "approvals[0].escalate[1].after must be later",
		"{tools: [a], expires: 1h, onExpiry: escalate}":                                                "approvals[0].onExpiry needs escalate",
		"{tools: [a], approvers: [x], escalate: [" + strings.Repeat("{after: 1h, to: [b]},", 5) + "]}": "approvals[0].escalate must be at most 4",

		"{tools: [a], when: '" + strings.Repeat("x", 5000) + "'}": "must be at most 4096 bytes",
	} {
		_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: t/m\ntools: ['a*']\napprovals:\n  - "+rule+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", rule, err, want)
		}
	}
}

const withApprovers = `
name: shop
model: test/m
tools: [issue_refund]
approvals:
  - tools: [issue_refund]
    approvers: [role:finance, alice]
    quorum: 2
    notByRequester: true
    remind: 4h
    escalate: [{after: 4h, to: [role:manager]}, {after: 24h, to: [carol, "role:board"]}]
    expires: 24h
    onExpiry: escalate
`

// TestEscalationAddsApprovers: approvers are parsed, survive storage, and grow with escalations.
func TestEscalationAddsApprovers(t *testing.T) {
	t.Parallel()
	d := parse(t, withApprovers)
	encoded, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := agents.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	a := stored.Approvals[0]
	if a.Quorum != 2 || !a.NotByRequester || a.Remind != 4*time.Hour || len(a.Escalate) != 2 {
		t.Errorf("rule = %+v, want a quorum of 2, not by the requester, a reminder after 4h and 2 escalations", a)
	}
	for after, want := range map[time.Duration][]string{
		0:                    {"role:finance", "alice"},
		4*time.Hour - 1:      {"role:finance", "alice"},
		4 * time.Hour:        {"role:finance", "alice", "role:manager"},
		24 * time.Hour:       {"role:finance", "alice", "role:manager", "carol", "role:board"},
		365 * 24 * time.Hour: {"role:finance", "alice", "role:manager", "carol", "role:board"},
	} {
		if got := a.ApproversAfter(after); !cmp.Equal(got, want) {
			t.Errorf("after %s they are %q, want %q", after, got, want)
		}
	}
	if expires, then := a.Deadline(); expires != 48*time.Hour || then != agents.OnExpiryReject {
		t.Errorf("Deadline = %s, %s, want 48h and reject", expires, then)
	}
	a.Escalate = a.Escalate[:1]
	if got := a.Escalations(); !cmp.Equal(got, []time.Duration{4 * time.Hour, 24 * time.Hour}) {
		t.Errorf("Escalations = %s, want 4h and 24h", got)
	}
	for who, want := range map[string]bool{"alice": true, "bob": false, "": false, "role:finance": false} {
		if got := agents.MayDecide(a.ApproversAt(0), who, []string{"clerk"}); got != want {
			t.Errorf("MayDecide of %q = %t, want %t", who, got, want)
		}
	}
	if !agents.MayDecide(a.ApproversAt(0), "bob", []string{"clerk", "finance"}) || !agents.MayDecide(nil, "", nil) {
		t.Error("MayDecide = false, want true for an approver by role, and without approvers")
	}
}

// TestRuleDigest: the digest of a rule covers the rule's content and its agent's name, and nothing
// else.
func TestRuleDigest(t *testing.T) {
	t.Parallel()
	d := parse(t, withApprovers)
	was := d.RuleDigest(0)
	if again := parse(t, strings.Replace(withApprovers, "tools: [issue_refund]", "tools: [issue_refund, get_order]", 1)); again.RuleDigest(0) != was || len(was) != 16 {
		t.Errorf("digest: got %s, want 16 characters that depend on the rule alone", was)
	}
	for _, other := range []string{
		strings.Replace(withApprovers, "quorum: 2", "quorum: 3", 1),
		strings.Replace(withApprovers, "name: shop", "name: other", 1),
		strings.Replace(withApprovers, "carol", "dave", 1),
	} {
		if parse(t, other).RuleDigest(0) == was {
			t.Errorf("digest of another rule is the same, want another for\n%s", other)
		}
	}
	one, spelled := parse(t, strings.Replace(withApprovers, "quorum: 2", "quorum: 1", 1)), parse(t, strings.Replace(withApprovers, "    quorum: 2\n", "", 1))
	if one.Revision() != spelled.Revision() {
		t.Error("revisions of a quorum of one and of none differ, want the same")
	}
}
