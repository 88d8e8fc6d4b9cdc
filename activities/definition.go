package activities

import (
	"context"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file finds the definition that applies to a step, or to an interrupt: of a published agent,
// of an agent that a step defines inline, or with the steps of a program.

// definition returns the definition of the step's agent: a published one, or one that a step
// defines inline.
func (a *Activities) definition(ctx context.Context, s runs.Step) (*agents.Definition, error) {
	source := stream.ApprovalSource{Agent: s.Agent, Revision: s.Revision}
	if place := s.PipelineStep; place != nil && place.Inline {
		// An inline agent is part of the definition of its pipeline, which s.Agent names.
		source.Step, source.Tree = place.Path, place.Tree
	}
	return a.interruptDefinition(ctx, runOf(s.Run).Thread, source)
}

// interruptDefinition returns the definition whose rules an interrupt's source names: the agent's,
// or that of one of its steps.
func (a *Activities) interruptDefinition(ctx context.Context, t stream.Thread, source stream.ApprovalSource) (*agents.Definition, error) {
	d, err := a.Agents.Revision(ctx, t.Tenant, source.Agent, source.Revision)
	if err != nil || source.Step == "" {
		return d, err
	}
	if d, err = a.withTree(ctx, d, t, source.Tree); err != nil {
		return nil, err
	}
	return pipeline.Rules(d, source.Step)
}

// withTree returns the agent with the steps of its program, which the record of the advance that
// began them keeps. record = 0 returns d unchanged.
func (a *Activities) withTree(ctx context.Context, d *agents.Definition, t stream.Thread, record uint64) (*agents.Definition, error) {
	if record == 0 {
		return d, nil
	}
	var stored storedAdvance
	if err := a.Log.Kept(ctx, t, record, &stored); err != nil {
		return nil, err
	}
	return pipeline.WithTree(d, stored.Tree)
}
