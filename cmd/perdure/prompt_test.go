package main

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// TestExampleFitsAgent: the example request asks an agent nothing that needs tools it lacks, and is
// one for an agent that needs no key.
func TestExampleFitsAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		definitions []*agents.Definition
		want        string
	}{
		"demo":   {[]*agents.Definition{{Name: "assistant", Model: "openai/m"}, {Name: "demo", Model: "scripted/demo", Tools: []string{"calculate", "current_time"}}}, `agents/demo/runs|What is 12*7`},
		"refund": {[]*agents.Definition{{Name: "refund", Model: "scripted/refund", Tools: []string{"issue_refund"}}}, `agents/refund/runs|What can you do?`},
	} {
		var out strings.Builder
		announce(&out, devOptions{}, addresses{API: "http://api"}, test.definitions, true, func(string) string { return "" })
		for part := range strings.SplitSeq(test.want+"|  console    http://api/console/", "|") {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: output = %s, want %q", name, out.String(), part)
			}
		}
	}
}
