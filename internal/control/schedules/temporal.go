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

// Clock is Temporal's side of schedules. It is safe for concurrent use.
type Clock struct {
	Temporal client.Client
	// ParkAfter is that of runs.
	ParkAfter time.Duration
}

// workflowTaskTimeout is how long a worker that died may hold a firing.
const workflowTaskTimeout = 5 * time.Second

// Handle addresses a schedule.
func (c *Clock) Handle(ctx context.Context, tenant, id string) client.ScheduleHandle {
	return c.Temporal.ScheduleClient().GetHandle(ctx, TemporalID(tenant, id))
}

// Set makes Temporal fire a schedule as it says now: a new one, or one that Temporal knows already,
// which stays paused if it is. Errors: *FieldError if Temporal does not take it.
func (c *Clock) Set(ctx context.Context, tenant string, k *Kept) error {
	err := c.create(ctx, tenant, k)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return c.Change(ctx, tenant, k)
	}
	return refused(err)
}

func (c *Clock) create(ctx context.Context, tenant string, k *Kept) error {
	now, err := c.schedule(tenant, k)
	if err != nil {
		return err
	}
	_, err = c.Temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: TemporalID(tenant, k.ID), Spec: *now.Spec, Action: now.Action,
		Overlap: now.Policy.Overlap, CatchupWindow: now.Policy.CatchupWindow, PauseOnFailure: now.Policy.PauseOnFailure,
		TypedSearchAttributes: attributes(tenant, k),
	})
	return err
}

// Change is Set for a schedule that Temporal knows. Errors: ErrUnknown if it does not, *FieldError.
func (c *Clock) Change(ctx context.Context, tenant string, k *Kept) error {
	now, err := c.schedule(tenant, k)
	if err != nil {
		return err
	}
	named := attributes(tenant, k)
	return refused(c.Handle(ctx, tenant, k.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(before client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			now.State = before.Description.Schedule.State
			return &client.ScheduleUpdate{Schedule: now, TypedSearchAttributes: &named}, nil
		},
	}))
}

// schedule returns what Temporal is told: of the input, where it is kept.
func (c *Clock) schedule(tenant string, k *Kept) (*client.Schedule, error) {
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
			ID: FireID(tenant, k.ID), Workflow: runs.TypeFire, TaskQueue: runs.TaskQueue, WorkflowTaskTimeout: workflowTaskTimeout,
			Args: []any{runs.FireInput{
				Tenant: tenant, Schedule: k.ID, Revision: k.Revision, ParkAfter: c.ParkAfter, TryCancel: k.Overlap == overlapTerminate,
			}},
			TypedSearchAttributes: attributes(tenant, k),
		},
		Policy: &client.SchedulePolicies{Overlap: overlap, CatchupWindow: window, PauseOnFailure: k.PauseOnFailure},
	}, nil
}

func attributes(tenant string, k *Kept) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(runs.AttributeTenant.ValueSet(stream.Token(tenant)), runs.AttributeAgent.ValueSet(k.Agent))
}

// Describe tells how a schedule stands. When the process is gone that had the schedule in memory,
// Temporal waits for it for some seconds, and is asked again. Errors: ErrUnknown.
func (c *Clock) Describe(ctx context.Context, tenant, id string) (*client.ScheduleDescription, error) {
	for {
		d, err := c.Handle(ctx, tenant, id).Describe(ctx)
		var late *serviceerror.DeadlineExceeded
		if ctx.Err() != nil || !errors.As(err, &late) && !errors.Is(err, context.DeadlineExceeded) {
			return d, refused(err)
		}
	}
}

// Pause pauses a schedule. Errors: ErrUnknown, as of all that follow.
func (c *Clock) Pause(ctx context.Context, tenant, id string) error {
	return refused(c.Handle(ctx, tenant, id).Pause(ctx, client.SchedulePauseOptions{Note: "paused by request"}))
}

// Resume lets a paused schedule go on.
func (c *Clock) Resume(ctx context.Context, tenant, id string) error {
	return refused(c.Handle(ctx, tenant, id).Unpause(ctx, client.ScheduleUnpauseOptions{Note: "resumed by request"}))
}

// Trigger fires a schedule now, also one that is paused. overlap is a policy's name; empty = the
// schedule's own. Errors: *FieldError.
func (c *Clock) Trigger(ctx context.Context, tenant, id, overlap string) error {
	var options client.ScheduleTriggerOptions
	if overlap != "" {
		policy, err := Overlap(overlap, "/overlap")
		if err != nil {
			return err
		}
		options.Overlap = policy
	}
	return refused(c.Handle(ctx, tenant, id).Trigger(ctx, options))
}

// Delete makes Temporal forget a schedule. Runs that it has begun go on.
func (c *Clock) Delete(ctx context.Context, tenant, id string) error {
	return refused(c.Handle(ctx, tenant, id).Delete(ctx))
}

// refused returns what Temporal's errors mean.
func refused(err error) error {
	var unknown *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return ErrUnknown
	case errors.As(err, &invalid):
		return &FieldError{"", "is not taken: " + invalid.Error()}
	}
	return fmt.Errorf("schedules: %w", err)
}
