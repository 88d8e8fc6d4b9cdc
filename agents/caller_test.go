package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agents"
)

func TestConditionsSeeWhoAsked(t *testing.T) {
	t.Parallel()
	const clerk, nobody = `{"tenant":"shop","subject":"ann","roles":["finance","clerk"]}`, `{"tenant":"shop","subject":"","roles":[]}`
	for _, tt := range []struct {
		when, caller string
		want         int
	}{
		{`!("finance" in caller.roles)`, clerk, -1},
		{`!("finance" in caller.roles)`, nobody, 0},
		{`!("finance" in caller.roles)`, ``, 0}, // a run of before: nothing slips through
		{`caller.subject != "ann" || caller.tenant != "shop"`, clerk, -1},
		{`caller.subject != "ann"`, nobody, 0},
		{`caller.roles.exists(r, r.startsWith("cle"))`, clerk, 0},
	} {
		d := &agents.Definition{Name: "shop", Model: "test/m", Tools: []string{"pay"}, Approvals: []agents.Approval{{Tools: []string{"pay"}, When: tt.when}}}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", tt.when, err)
		}
		if got := d.Asks(agents.ProposedCall{Agent: "shop", Tool: "pay", Caller: json.RawMessage(tt.caller)}); got != tt.want {
			t.Errorf("%s of %s: rule %d, want %d", tt.when, tt.caller, got, tt.want)
		}
	}
}
