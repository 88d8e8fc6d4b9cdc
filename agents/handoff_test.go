package agents_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// TestHandoffErrors: a handoff that can never work is an error when its agent is loaded.
func TestHandoffErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("b", 53)
	for name, c := range map[string]struct{ yaml, want string }{
		"pattern":          {least + "tools: [\"handoff:*\"]\n", `a.yaml:3: tools: "handoff:*" must name one agent, without a pattern`},
		"no name":          {least + "tools: [\"handoff:\"]\n", `a.yaml:3: tools: "handoff:" must name one agent, without a pattern`},
		"itself":           {least + "tools: [\"handoff:a\"]\n", `a.yaml:3: tools: "handoff:a" is the agent itself`},
		"long name":        {least + "tools: [\"handoff:" + long + "\"]\n", `a.yaml:3: tools: "handoff:` + long + `" is too long: its tool is named transfer_to_` + long + `, and tool names have at most 64 characters`},
		"name of a tool":   {least + "tools: [transfer_to_b, \"handoff:b\"]\n", `a.yaml:3: tools: "handoff:b" and another tool have the same name for the model, transfer_to_b`},
		"name of an agent": {least + "tools: [\"agent:transfer_to_b\", \"handoff:b\"]\n", `a.yaml:3: tools: "handoff:b" and another tool have the same name for the model, transfer_to_b`},
		"from steps":       {least + "tools: [\"handoff:b\"]\nsteps: [{name: x, agent: c}]\n", `a.yaml:3: tools: "handoff:b" needs an agent with a model of its own, not with steps or a workflow`},
		"from a workflow":  {"name: a\nworkflow: w\ntools: [\"handoff:b\"]\n", `a.yaml:3: tools: "handoff:b" needs an agent with a model of its own, not with steps or a workflow`},
		"from a step":      {least + "steps:\n  - {name: x, agent: {tools: [\"handoff:b\"]}}\n", `a.yaml:4: steps[0].agent.tools "handoff:b" is not available in a step: a step cannot hand over the thread`},
		"unused rule":      {least + "tools: [\"handoff:b\"]\napprovals: [{tools: [b]}]\n", `a.yaml:4: approvals[0].tools: "b" is not one of the agent's tools`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := agents.Parse("a.yaml", []byte(c.yaml)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestHandoffs: handoff targets are named by agent. Approval rules refer to the names of the tools
// that models call.
func TestHandoffs(t *testing.T) {
	t.Parallel()
	d, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: [x, \"handoff:b\", \"client:*\", \"handoff:c\", \"agent:b\"]\napprovals: [{tools: [transfer_to_b]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := agents.Handoffs(d.Tools); strings.Join(got, " ") != "b c" {
		t.Errorf("Handoffs = %v, want b and c", got)
	}
	ours, clients := agents.SplitTools(d.Tools)
	if strings.Join(ours, " ") != "x" || strings.Join(clients, " ") != "client:*" || strings.Join(agents.Subagents(d.Tools), " ") != "b" {
		t.Errorf("tools = %v, %v and %v, want x, client:* and b", ours, clients, agents.Subagents(d.Tools))
	}
	if rule := d.ApprovalRule(agents.ProposedCall{Agent: "a", Tool: agents.HandoffTool("b")}); rule != 0 {
		t.Errorf("rule about the handoff = %d, want 0", rule)
	}
}

// TestHandoffToStepsIsRefused: in a folder of agents, a handoff to an agent that cannot take over
// a thread is an error.
func TestHandoffToStepsIsRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": "name: a\nmodel: p/m\ntools:\n  - \"handoff:b\"\n  - \"handoff:elsewhere\"\n",
		"b.yaml": "name: b\nsteps: [{name: x, agent: c}]\n",
	})
	_, err := agents.LoadDir(dir)
	if err == nil || !strings.HasSuffix(err.Error(), `a.yaml:4: tools: "handoff:b" has steps or a workflow, and cannot take over a thread`) {
		t.Errorf("handoff to an agent with steps: got %v, want an error in line 4", err)
	}
}
