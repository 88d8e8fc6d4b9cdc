package agents_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/agents"
)

// TestUses: a definition uses the tools and models that it names, also in inline agents and
// compensations. What clients and other agents have is not among them.
func TestUses(t *testing.T) {
	t.Parallel()
	d, err := agents.Parse("", []byte(`
name: a
model: openai/gpt
tools: [lookup, "mcp:crm/*", "client:*", "agent:b", "handoff:c"]
context: {maxTokens: 2000, policy: summarize, model: openai/mini}
titleModel: openai/nano
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []agents.Use{
		{Kind: agents.UseTool, Name: "lookup", Key: "tools[0]"}, {Kind: agents.UseTool, Name: "mcp:crm/*", Key: "tools[1]"},
		{Kind: agents.UseModel, Name: "openai/gpt", Key: "model"}, {Kind: agents.UseModel, Name: "openai/mini", Key: "context.model"},
		{Kind: agents.UseModel, Name: "openai/nano", Key: "titleModel"},
	}
	if got := d.Uses(); !slices.Equal(got, want) {
		t.Errorf("uses of an agent: got %v, want %v", got, want)
	}
	if got := d.UsedAgents(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("agents of an agent: got %q, want its subagent and its handoff", got)
	}
	if d, err = agents.Parse("", []byte(`
name: p
model: openai/gpt
titleModel: openai/nano
tools: [charge, refund]
steps:
  - name: pay
    tool: charge
    compensate:
      agent: {model: openai/other, instructions: Undo it., tools: [lookup]}
  - name: each
    map:
      items: "[1]"
      steps:
        - name: inner
          agent: {instructions: Work., tools: [deep, "agent:helper"]}
        - {name: next, agent: clerk}
`)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, use := range d.Uses() {
		names = append(names, use.Name)
	}
	slices.Sort(names)
	if want := []string{"charge", "deep", "lookup", "openai/gpt", "openai/gpt", "openai/nano", "openai/other", "refund"}; !slices.Equal(names, want) {
		t.Errorf("uses of a pipeline: got %q, want %q", names, want)
	}
	if got := d.UsedAgents(); !slices.Equal(got, []string{"clerk", "helper"}) {
		t.Errorf("agents of a pipeline: got %q, want those of its steps", got)
	}
	program := agents.Definition{Name: "w", Workflow: "billing"}
	if got := program.Uses(); !slices.Equal(got, []agents.Use{{Kind: agents.UseProgram, Name: "billing", Key: "workflow"}}) {
		t.Errorf("uses of a program: got %v", got)
	}
	remote := agents.Definition{Name: "r", Remote: &agents.Remote{URL: "https://agents.example.com:8443/r"}}
	if got := remote.Uses(); !slices.Equal(got, []agents.Use{{Kind: agents.UseHost, Name: "agents.example.com:8443", Key: "remote.url"}}) {
		t.Errorf("uses of a remote agent: got %v", got)
	}
}
