package console

import (
	"testing"
)

// TestApprovals: one process serves offices, whose people decide concurrently.
func TestApprovals(t *testing.T) {
	t.Parallel()
	tests := map[string]func(office){
		"quorum": testQuorum, "views": testViews, "expiry": testExpiry, "keys": testKeys, "narrow": testNarrow, "tokens": testTokens,
		"focus": testFocus, "unanswered": testUnanswered, "answers": testAnswerQuorum,
	}
	var tenants []string
	for name := range tests {
		tenants = append(tenants, name)
	}
	for name, o := range openOffices(t, tenants...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.t = t
			tests[name](o)
		})
	}
}
