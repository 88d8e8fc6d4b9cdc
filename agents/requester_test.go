package agents_test

import (
	"testing"

	"github.com/perdure/perdure/agents"
)

func TestConditionsReadCaller(t *testing.T) {
	t.Parallel()
	clerk, nobody := &agents.Caller{Tenant: "shop", Subject: "ann", Roles: []string{"finance", "clerk"}}, &agents.Caller{Tenant: "shop"}
	for _, tt := range []struct {
		when   string
		caller *agents.Caller
		want   int
	}{
		{`!("finance" in caller.roles)`, clerk, -1},
		{`!("finance" in caller.roles)`, nobody, 0},
		{`!("finance" in caller.roles)`, nil, 0}, // without a requester the condition fails and requires an approval
		{`caller.subject != "ann" || caller.tenant != "shop"`, clerk, -1},
		{`caller.subject != "ann"`, nobody, 0},
		{`caller.roles.exists(r, r.startsWith("cle"))`, clerk, 0},
	} {
		d := &agents.Definition{Name: "shop", Model: "test/m", Tools: []string{"pay"}, Approvals: []agents.Approval{{Tools: []string{"pay"}, When: tt.when}}}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", tt.when, err)
		}
		if got := d.ApprovalRule(agents.ProposedCall{Agent: "shop", Tool: "pay", Callers: []*agents.Caller{tt.caller}}); got != tt.want {
			t.Errorf("%s of %+v: rule %d, want %d", tt.when, tt.caller, got, tt.want)
		}
	}
}

// TestConditionsJudgeEveryCaller: a rule applies if its condition is true, or fails, for one of the
// callers.
func TestConditionsJudgeEveryCaller(t *testing.T) {
	t.Parallel()
	clerk, other := &agents.Caller{Subject: "bob", Roles: []string{"finance"}}, &agents.Caller{Subject: "ann"}
	d := &agents.Definition{Name: "shop", Model: "test/m", Tools: []string{"pay"}, Approvals: []agents.Approval{{Tools: []string{"pay"}, When: `!("finance" in caller.roles)`}}}
	for _, tt := range []struct {
		callers []*agents.Caller
		want    int
	}{
		{[]*agents.Caller{clerk}, -1},
		{[]*agents.Caller{clerk, clerk}, -1},
		{[]*agents.Caller{clerk, other}, 0},
		{[]*agents.Caller{other, clerk}, 0},
		{[]*agents.Caller{clerk, nil}, 0},
		{nil, 0},
	} {
		if got := d.ApprovalRule(agents.ProposedCall{Agent: "shop", Tool: "pay", Callers: tt.callers}); got != tt.want {
			t.Errorf("rule for %d callers %+v = %d, want %d", len(tt.callers), tt.callers, got, tt.want)
		}
	}
}
