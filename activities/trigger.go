package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agents/expression"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file has the activity of event.trigger.v1, the workflow that an event starts for each trigger
// that it matches. The run begins like that of a schedule.

// StartTriggeredRun is event.run.v1: it starts the run of a trigger, once. The ID of the run derives
// from the event and the trigger, so a later attempt finds the run. A thread that refuses the run is a
// result (FiredRun.Refused), except if its queue is full: then the error is retried, as long as the event
// is kept.
func (a *Activities) StartTriggeredRun(ctx context.Context, in runs.TriggerInput) (out runs.FiredRun, err error) {
	defer recoverPanic(ctx, &err)
	entry := audit.Entry{Action: audit.FireTrigger, Target: audit.Target{Agent: in.Agent}}
	out, err = a.trigger(ctx, in, &entry)
	if template, ok := errors.AsType[*templateError](err); ok {
		entry.Details = map[string]string{"reason": template.Error()}
	}
	if err = triggerError(ctx, err); err == nil && out.Refused == runs.ErrorQueueFull {
		err = temporal.NewApplicationError("the queue of the thread is full", runs.ErrorQueueFull)
	}
	if recording := a.recordFiring(ctx, in.Tenant, entry, out, err); recording != nil {
		return out, activityError(ctx, recording)
	}
	return out, err
}

// Error types of triggers.
const (
	// errorEventGone: the event is not kept any more.
	errorEventGone = "event_gone"
	// errorInvalidTrigger: a template of the trigger has no value for the event.
	errorInvalidTrigger = "invalid_trigger"
)

// templateError is the error of a template of a trigger. It has no content of the event.
type templateError struct{ err error }

// Error implements error.
func (e *templateError) Error() string { return e.err.Error() }

// triggerError is firingError with more final errors.
func triggerError(ctx context.Context, err error) error {
	if template, ok := errors.AsType[*templateError](err); ok {
		return temporal.NewNonRetryableApplicationError("the trigger: "+template.Error(), errorInvalidTrigger, nil)
	}
	if errors.Is(err, events.ErrUnknown) {
		return temporal.NewNonRetryableApplicationError("the event is not kept any more", errorEventGone, nil)
	}
	return firingError(ctx, err)
}

// trigger reads the event and the trigger, and starts the run. It sets the actor of the entry.
func (a *Activities) trigger(ctx context.Context, in runs.TriggerInput, entry *audit.Entry) (runs.FiredRun, error) {
	event, err := a.Events.Store.Event(ctx, in.Event)
	if err != nil {
		return runs.FiredRun{}, err
	}
	definition, err := a.Agents.Revision(ctx, in.Tenant, in.Agent, in.Revision)
	if err != nil {
		return runs.FiredRun{}, err
	}
	if in.Trigger < 0 || in.Trigger >= len(definition.Triggers) {
		return runs.FiredRun{}, fmt.Errorf("activities: agent %s has no trigger %d", in.Agent, in.Trigger)
	}
	run, schedule, err := triggeredRun(in, &definition.Triggers[in.Trigger], event)
	if err != nil {
		return runs.FiredRun{}, err
	}
	out := runs.FiredRun{Run: runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID}}
	ctx = inRun(ctx, out.Run, in.Agent, in.Revision)
	actor, ok := schedule.Actor(in.Tenant, a.Principals)
	if !ok {
		return out, &unknownServiceError{in.Tenant, schedule.RunAs}
	}
	entry.Actor = audit.ActorOf(actor)
	out.Refused, out.AlreadyBegun, err = a.startFiredRun(ctx, &startedRun{
		schedule: schedule, actor: actor, run: run, agent: catalog.Published{Definition: definition, Revision: in.Revision},
		event: &stream.TriggerEvent{ID: event.ID, Source: event.Source, Type: event.Type},
	}, runs.FiringInput{Tenant: in.Tenant})
	return out, err
}

// triggeredRun returns the run of a trigger, and the schedule that describes how it begins.
func triggeredRun(in runs.TriggerInput, t *agents.Trigger, event *events.Event) (stream.Run, *schedules.Stored, error) {
	encoded, err := json.Marshal(event.Content)
	if err != nil {
		return stream.Run{}, nil, fmt.Errorf("activities: encode event: %w", err)
	}
	thread, message, err := t.Evaluate(expression.Decode(encoded))
	if err != nil {
		return stream.Run{}, nil, &templateError{err}
	}
	input, err := json.Marshal(map[string]any{"messages": []map[string]any{{"role": "user", "content": message}}})
	if err != nil {
		return stream.Run{}, nil, fmt.Errorf("activities: encode input: %w", err)
	}
	// An event whose source and ID return after events.Retention is another one: it has another sequence.
	id := fmt.Sprintf("trg_%s_%d_%s_%d", in.Agent, in.Trigger, in.EventDigest, in.Event)
	run := stream.Run{Thread: stream.Thread{Tenant: in.Tenant, ID: cmp.Or(thread, id)}, ID: id}
	schedule := &schedules.Stored{Schedule: schedules.Schedule{
		Agent: in.Agent, ThreadID: thread, RunAs: t.RunAs, OnBusy: cmp.Or(runs.OnBusy(t.OnBusy), runs.OnBusyEnqueue), Input: input,
	}}
	return run, schedule, nil
}
