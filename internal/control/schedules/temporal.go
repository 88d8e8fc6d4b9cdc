package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Scheduler creates, changes and reads the schedules in Temporal. Temporal keeps the times, the
// overlap policy and whether a schedule is paused; each action starts the workflow schedule.fire.v1
// with the schedule's revision, and never with its input. Scheduler has no state of its own and is
// safe for concurrent use.
type Scheduler struct {
	Temporal client.Client
	// ParkAfter is how long runs of schedules wait for interrupts before they are parked. It
	// becomes part of a schedule's action when Set or Change writes it.
	ParkAfter time.Duration
}

// Handle returns Temporal's handle of a schedule. It makes no request: the schedule may not exist.
func (s *Scheduler) Handle(ctx context.Context, tenant, id string) client.ScheduleHandle {
	return s.Temporal.ScheduleClient().GetHandle(ctx, TemporalID(tenant, id))
}

// Set creates a schedule in Temporal, or changes it if Temporal has it. A schedule that is paused
// stays paused. Errors: *FieldError if Temporal refuses the specification.
func (s *Scheduler) Set(ctx context.Context, tenant string, k *Stored) error {
	err := s.create(ctx, tenant, k)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return s.Change(ctx, tenant, k)
	}
	return mapError(err)
}

// create creates a schedule. It fails with temporal.ErrScheduleAlreadyRunning if Temporal has it.
func (s *Scheduler) create(ctx context.Context, tenant string, k *Stored) error {
	schedule, err := s.schedule(tenant, k)
	if err != nil {
		return err
	}
	_, err = s.Temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: TemporalID(tenant, k.ID), Spec: *schedule.Spec, Action: schedule.Action,
		Overlap: schedule.Policy.Overlap, CatchupWindow: schedule.Policy.CatchupWindow, PauseOnFailure: schedule.Policy.PauseOnFailure,
		TypedSearchAttributes: attributes(tenant, k),
	})
	return err
}

// Change replaces the specification, action and policies of a schedule that Temporal has, and keeps
// its state: whether it is paused, and its note. Errors: ErrUnknown if Temporal does not have it,
// *FieldError if Temporal refuses the specification.
func (s *Scheduler) Change(ctx context.Context, tenant string, k *Stored) error {
	schedule, err := s.schedule(tenant, k)
	if err != nil {
		return err
	}
	searchAttributes := attributes(tenant, k)
	return mapError(s.Handle(ctx, tenant, k.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(before client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule.State = before.Description.Schedule.State
			return &client.ScheduleUpdate{Schedule: schedule, TypedSearchAttributes: &searchAttributes}, nil
		},
	}))
}

// schedule translates a schedule to Temporal's form. The action has the revision, by which the
// firing finds the input in the Store. Errors: *FieldError.
func (s *Scheduler) schedule(tenant string, k *Stored) (*client.Schedule, error) {
	spec, err := k.Spec.Temporal()
	if err != nil {
		return nil, err
	}
	overlap, err := Overlap(k.Overlap, "/overlap")
	if err != nil {
		return nil, err
	}
	window, err := duration("/catchupWindow", k.CatchupWindow)
	if err != nil {
		return nil, err
	}
	return &client.Schedule{
		Spec: &spec,
		Action: &client.ScheduleWorkflowAction{
			ID: FireID(tenant, k.ID), Workflow: runs.TypeFiring, TaskQueue: runs.TaskQueue, WorkflowTaskTimeout: runs.WorkflowTaskTimeout,
			Args: []any{runs.FiringInput{
				Tenant: tenant, Schedule: k.ID, Revision: k.Revision, ParkAfter: s.ParkAfter, TryCancel: k.Overlap == overlapTerminate,
			}},
			TypedSearchAttributes: attributes(tenant, k), Priority: runs.TenantPriority(stream.Token(tenant)),
		},
		Policy: &client.SchedulePolicies{Overlap: overlap, CatchupWindow: window, PauseOnFailure: k.PauseOnFailure},
	}, nil
}

// attributes returns the search attributes of a schedule and of its firings. The tenant is a token,
// as in the IDs of workflows.
func attributes(tenant string, k *Stored) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(runs.AttributeTenant.ValueSet(stream.Token(tenant)), runs.AttributeAgent.ValueSet(k.Agent))
}

// Describe returns the state of a schedule: its next times, recent firings and whether it is
// paused. If the process that held the schedule in memory has died, Temporal answers only after
// some seconds, with DeadlineExceeded; Describe then repeats the request until ctx ends. Errors:
// ErrUnknown.
func (s *Scheduler) Describe(ctx context.Context, tenant, id string) (*client.ScheduleDescription, error) {
	for {
		d, err := s.Handle(ctx, tenant, id).Describe(ctx)
		var deadlineErr *serviceerror.DeadlineExceeded
		if ctx.Err() != nil || !errors.As(err, &deadlineErr) && !errors.Is(err, context.DeadlineExceeded) {
			return d, mapError(err)
		}
	}
}

// NoteRequested is Temporal's note of a pause that a caller has requested. Temporal itself writes the
// note of a pause after a failure.
const NoteRequested = "paused by request"

// Pause pauses a schedule. Errors: ErrUnknown, as for the methods below.
func (s *Scheduler) Pause(ctx context.Context, tenant, id string) error {
	return mapError(s.Handle(ctx, tenant, id).Pause(ctx, client.SchedulePauseOptions{Note: NoteRequested}))
}

// Resume ends the pause of a schedule.
func (s *Scheduler) Resume(ctx context.Context, tenant, id string) error {
	return mapError(s.Handle(ctx, tenant, id).Unpause(ctx, client.ScheduleUnpauseOptions{Note: "resumed by request"}))
}

// Trigger fires a schedule at once, even if it is paused. overlap is the name of a policy for this
// firing; "" = the schedule's own. Errors: *FieldError if there is no such policy.
func (s *Scheduler) Trigger(ctx context.Context, tenant, id, overlap string) error {
	var options client.ScheduleTriggerOptions
	if overlap != "" {
		policy, err := Overlap(overlap, "/overlap")
		if err != nil {
			return err
		}
		options.Overlap = policy
	}
	return mapError(s.Handle(ctx, tenant, id).Trigger(ctx, options))
}

// Delete deletes a schedule from Temporal. Runs that it has started continue.
func (s *Scheduler) Delete(ctx context.Context, tenant, id string) error {
	return mapError(s.Handle(ctx, tenant, id).Delete(ctx))
}

// mapError maps the errors of Temporal: NotFound to ErrUnknown, InvalidArgument to a *FieldError
// about the schedule as a whole.
func mapError(err error) error {
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	switch {
	case err == nil:
		return nil
	case errors.As(err, &notFound):
		return ErrUnknown
	case errors.As(err, &invalid):
		return &FieldError{"", "is not accepted by Temporal: " + invalid.Error()}
	}
	return fmt.Errorf("schedules: %w", err)
}
