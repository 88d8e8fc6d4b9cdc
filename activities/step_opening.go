package activities

import (
	"context"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file writes the lifecycle events with which a step begins. AG-UI allows one open step, and
// no activity writes an event alone, so the record that opens a step also closes the one before it.

// runOpening returns what the first record of a run says of it. Snapshots.OpenRun fills in the
// conversation.
func runOpening(agent, revision string, b runs.Beginning) stream.Opening {
	return stream.Opening{Agent: agent, Revision: revision, Input: b.Input, Digest: b.Digest, Continues: b.Continues, Edits: b.Edits}
}

// openStep writes the events that end the step before and begin this one, and adds steered messages
// to the conversation. It returns the last record of the lane for Begin. Only the first attempt
// writes; the record is never retracted.
func (a *Activities) openStep(ctx context.Context, p stream.Place, s runs.Step, steered []uint64) (uint64, error) {
	return a.Log.OpenStep(ctx, p, steeringNote(s.PipelineStep, steered), stepEvents(s)...)
}

// stepEvents returns the events that end the step before and begin this one.
func stepEvents(s runs.Step) []agui.Event {
	var events []agui.Event
	if s.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: s.Closes})
	}
	return append(events, &agui.StepStarted{StepName: s.Name})
}

// steeringNote returns the note of an open record that adds steered messages, by the sequences of
// their proposals; nil = none.
func steeringNote(place *runs.StepRef, steered []uint64) any {
	if len(steered) == 0 {
		return nil
	}
	return stream.Steering{Inputs: steered, Scope: scopeOf(place)}
}

// visibilityOf returns the visibility of the messages of a step. place is the pipeline step that
// adds them; nil = none.
func visibilityOf(s runs.Step, place *runs.StepRef) stream.Visibility {
	switch {
	case place != nil && place.Hidden:
		return stream.VisibleToStep
	case s.Child != nil && s.Child.Hidden:
		return stream.VisibleToAgent
	}
	return stream.VisibleToAll
}

// scopeOf returns the scope of a step's messages; "" = the step is not in a pipeline.
func scopeOf(place *runs.StepRef) string {
	if place == nil {
		return ""
	}
	return place.Scope
}
