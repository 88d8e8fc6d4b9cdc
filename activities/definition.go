package activities

import (
	"context"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/workflows"
)

// definition is that of the agent which a step is one of: by its name, or where it stands among the steps of
// another.
func (a *Activities) definition(ctx context.Context, s workflows.Step) (*agents.Definition, error) {
	step := ""
	if s.At != nil && s.At.Inline {
		step = s.At.Path
	}
	return definitionAt(ctx, a.Agents, s.Agent, s.Revision, step)
}

// definitionAt is that of an agent, or of one of its steps.
func definitionAt(ctx context.Context, all Definitions, agent, revision, step string) (*agents.Definition, error) {
	d, err := all.Revision(ctx, agent, revision)
	if err != nil || step == "" {
		return d, err
	}
	return pipeline.Rules(d, step)
}
