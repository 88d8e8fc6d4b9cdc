package activities

import (
	"context"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// opening returns the opening of a run for the log.
func opening(agent, revision string, b runs.Beginning) stream.Opening {
	return stream.Opening{Agent: agent, Revision: revision, Input: b.Input, Digest: b.Digest, Continues: b.Continues, Edits: b.Edits}
}

// openStep writes the events that begin a step, and adds the messages that the run was steered
// with.
func (a *Activities) openStep(ctx context.Context, p stream.Place, s runs.Step, steered []uint64) (uint64, error) {
	var events []agui.Event
	if s.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: s.Closes})
	}
	return a.Log.Open(ctx, p, steering(s.Place, steered), append(events, &agui.StepStarted{StepName: s.Name})...)
}

// steering returns the result of an open record with steered messages; nil = none.
func steering(at *runs.StepPlace, steered []uint64) any {
	if len(steered) == 0 {
		return nil
	}
	return stream.Steering{Inputs: steered, Scope: scopeOf(at)}
}

// scopeOf returns the scope of the messages of a step.
func scopeOf(at *runs.StepPlace) string {
	if at == nil {
		return ""
	}
	return at.Scope
}
