package activities

import (
	"context"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// output returns the required output of a step's agent; nil = any text.
func (a *Activities) output(ctx context.Context, s runs.Step) (*agents.Output, error) {
	agent, revision, err := a.outputAgent(ctx, s)
	if err != nil || agent == "" {
		return nil, err
	}
	d, err := a.Agents.Revision(ctx, agent, revision)
	if err == nil {
		d, err = a.withTree(ctx, d, runOf(s.Run).Thread, s.Place.Tree)
	}
	if err != nil {
		return nil, err
	}
	step := pipeline.StepAt(d, s.Place.Path)
	if step == nil {
		return nil, nil
	}
	return step.Output, nil
}

// outputAgent returns the agent whose step defines the output; "" = none.
func (a *Activities) outputAgent(ctx context.Context, s runs.Step) (agent, revision string, err error) {
	switch {
	case s.Place == nil:
		return "", "", nil
	case s.Place.Inline:
		return s.Agent, s.Revision, nil
	case len(s.Place.Prompts) == 0:
		return "", "", nil
	}
	var k storedAdvance
	err = a.Log.Kept(ctx, runOf(s.Run).Thread, s.Place.Prompts[0], &k)
	return k.Agent, k.Revision, err
}

// outputOf returns the output for the provider.
func outputOf(o *agents.Output) *llm.Output {
	if o == nil {
		return nil
	}
	return &llm.Output{Schema: o.Schema, Native: o.Native}
}

// outputSection describes the output in the system message: some providers take no schema, and none
// enforces all of one.
func outputSection(o *agents.Output) string {
	return "What you answer in the end has to be JSON that fits this JSON Schema, and nothing but that:\n\n<schema>\n" + string(o.Schema) + "\n</schema>"
}
