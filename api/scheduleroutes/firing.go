package scheduleroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file answers with schedules and their firings. A firing is one execution of the workflow
// schedule.fire, which places a run. Temporal knows the latest firings; the log knows what became
// of their runs.

// schedule is the answer about a schedule: its definition, and its state in Temporal.
type schedule struct {
	schedules.Schedule
	// ChangedBy is the subject of the caller that last changed the definition, and the requester of
	// its runs; "" = anonymous.
	ChangedBy string `json:"changedBy,omitempty"`
	// Owner is the subject of the caller that created the schedule; "" = anonymous.
	Owner string `json:"owner,omitempty"`
	// CreatedAt is when the schedule was created, ChangedAt when its definition last changed.
	// Paused tells that no time fires.
	CreatedAt time.Time `json:"createdAt"`
	ChangedAt time.Time `json:"changedAt"`
	Paused    bool      `json:"paused"`
	// PausedBecause is Temporal's note about a pause after the failure of a run; "" = the schedule is
	// not paused, or a caller has paused it.
	PausedBecause string `json:"pausedBecause,omitempty"`
	// Next are the next times in the schedule, in UTC; never null. Fired counts the firings since
	// the creation.
	Next  []time.Time `json:"next"`
	Fired int         `json:"fired"`
	// Missed counts the times that were too late to catch up. Skipped counts those at which the run
	// before was still active.
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Recent are the latest firings that Temporal remembers, the last one first. Lists omit them.
	Recent []firing `json:"recent,omitempty"`
}

// firing is one firing of a schedule, and its run. ScheduledAt is the time in the schedule, FiredAt
// the time at which Temporal fired.
type firing struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	FiredAt     time.Time `json:"firedAt"`
	// ThreadID and RunID are those of the firing's run, whether the run has begun or not.
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// Outcome and Code are those of the run; "" = it is active, or unknown. "refused" = the thread
	// did not accept the run, "failed" = the run could not be started.
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	// Active reports whether the firing's workflow is open, which lasts as long as the run or one
	// that continues it.
	Active bool `json:"active"`
}

// listSchedules serves GET /v1/schedules: the schedules of the caller's tenant that the caller may
// read, without their inputs and firings. So a page may be short.
func (r *Routes) listSchedules(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	principal, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	page, next, err := r.Schedules.List(ctx, principal.Tenant, c.Query("cursor"), limit)
	if err != nil {
		return err
	}
	page = slices.DeleteFunc(page, func(stored *schedules.Stored) bool {
		return r.Access.CheckSchedule(ctx, stored.Owner, policy.ReadSchedule) != nil
	})
	items, err := r.describeSchedules(ctx, principal.Tenant, page)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, struct {
		Items      []*schedule `json:"items"`
		NextCursor string      `json:"nextCursor,omitempty"`
	}{items, next})
}

// maxDescriptions bounds the concurrent requests to Temporal for one page.
const maxDescriptions = 8

// describeSchedules returns the schedules of a page with their state in Temporal. It omits those
// that Temporal does not know: their creation or deletion was interrupted. So a page may be short.
func (r *Routes) describeSchedules(ctx context.Context, tenant string, page []*schedules.Stored) ([]*schedule, error) {
	all := make([]*schedule, len(page))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxDescriptions)
	for i, stored := range page {
		group.Go(func() error {
			d, err := r.Scheduler.Describe(ctx, tenant, stored.ID)
			if err != nil && !errors.Is(err, schedules.ErrUnknown) {
				return err
			}
			if err == nil {
				// Each index belongs to one goroutine, so all needs no lock.
				all[i] = scheduleOf(stored, d)
				all[i].Input = nil
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(known *schedule) bool { return known == nil }), nil
}

// scheduleOf returns the answer about a schedule without its firings.
func scheduleOf(stored *schedules.Stored, d *client.ScheduleDescription) *schedule {
	out := &schedule{
		Schedule: stored.Schedule, CreatedAt: stored.CreatedAt, ChangedAt: stored.ChangedAt, Next: []time.Time{},
		Fired: d.Info.NumActions, Missed: d.Info.NumActionsMissedCatchupWindow, Skipped: d.Info.NumActionsSkippedOverlap,
	}
	if stored.Owner != nil {
		out.Owner = stored.Owner.Subject
	}
	if stored.Requester != nil {
		out.ChangedBy = stored.Requester.Subject
	}
	if state := d.Schedule.State; state != nil && state.Paused {
		out.Paused = true
		if state.Note != schedules.NoteRequested {
			out.PausedBecause = state.Note
		}
	}
	for _, next := range d.Info.NextActionTimes {
		out.Next = append(out.Next, next.UTC())
	}
	return out
}

// showSchedule serves GET /v1/schedules/{schedule}: a schedule with its latest firings. An unknown
// schedule is a 404.
func (r *Routes) showSchedule(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	principal, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	stored, err := r.Schedules.Get(ctx, principal.Tenant, request.Segment(c, "schedule"))
	if err != nil {
		return err
	}
	if err := r.Access.CheckSchedule(ctx, stored.Owner, policy.ReadSchedule); err != nil {
		return err
	}
	return r.answerSchedule(ctx, c, http.StatusOK, principal.Tenant, stored)
}

// answerSchedule answers with a schedule, its state in Temporal, and its latest firings. After an
// error it has answered nothing.
func (r *Routes) answerSchedule(ctx context.Context, c *gin.Context, status int, tenant string, stored *schedules.Stored) error {
	d, err := r.Scheduler.Describe(ctx, tenant, stored.ID)
	if err != nil {
		return err
	}
	out := scheduleOf(stored, d)
	if out.Recent, err = r.firings(ctx, tenant, stored, d); err != nil {
		return err
	}
	return request.WriteJSON(c, status, out)
}

// firings returns the latest firings of a schedule, the last one first, with the outcomes of their
// runs. It asks Temporal and the log for each one.
func (r *Routes) firings(ctx context.Context, tenant string, stored *schedules.Stored, d *client.ScheduleDescription) (list []firing, err error) {
	for _, recent := range slices.Backward(d.Info.RecentActions) {
		if recent.StartWorkflowResult == nil {
			continue
		}
		id := recent.StartWorkflowResult.WorkflowID
		// The run is not in Temporal's list: it follows from the schedule and the nominal time in
		// the workflow ID.
		nominalTime, ok := schedules.NominalTime(tenant, stored.ID, id)
		if !ok {
			continue
		}
		run := stored.RunAt(tenant, nominalTime)
		f := firing{ScheduledAt: nominalTime, FiredAt: recent.ActualTime.UTC(), ThreadID: run.Thread.ID, RunID: run.ID}
		if f.Active, err = r.isActive(ctx, id); err != nil {
			return nil, err
		}
		if f.Outcome, f.Code, err = r.firingOutcome(ctx, run, id, f.Active); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// isActive reports whether the workflow of a firing is open. workflowID is that of the firing. The
// description of the schedule does not tell that of overlapping firings.
func (r *Routes) isActive(ctx context.Context, workflowID string) (bool, error) {
	d, err := r.Temporal.DescribeWorkflowExecution(ctx, workflowID, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("api: describe firing: %w", err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// firingOutcome returns the outcome and the error code of a firing's run: from the run's terminal
// record, or else from the result of the firing's workflow, if no run has begun. Both are empty if
// the run is active, or if Temporal has forgotten the firing.
func (r *Routes) firingOutcome(ctx context.Context, run stream.Run, workflowID string, active bool) (outcome, code string, err error) {
	end, err := r.Log.TerminalRecord(ctx, run)
	if err != nil {
		return "", "", err
	}
	// The log is asked first: it knows the outcome also after Temporal has forgotten the firing.
	if end != nil {
		ending, err := end.RunEnding(ctx)
		return ending.Outcome, ending.Code, err
	}
	if active {
		return "", "", nil
	}
	var result runs.FiringResult
	err = r.Temporal.GetWorkflow(ctx, workflowID, "").Get(ctx, &result)
	var failed *temporal.ApplicationError
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &failed):
		return outcomeFailed, failed.Type(), nil
	case temporal.IsCanceledError(err), temporal.IsTerminatedError(err):
		return r.cancelledOutcome(ctx, run)
	case errors.As(err, &notFound):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("api: find a firing: %w", err)
	case result.Refused != "":
		return outcomeRefused, result.Refused, nil
	}
	return "", "", nil
}

// cancelledOutcome returns the outcome of a run without an end whose firing was cancelled or
// terminated, as overlap policies do: cancelled, unless the run has begun or is queued.
func (r *Routes) cancelledOutcome(ctx context.Context, run stream.Run) (outcome, code string, err error) {
	opening, err := r.Log.OpeningOf(ctx, run)
	if err != nil || opening != nil {
		return "", "", err
	}
	// A proposal without a first record: the run is queued, unless a cancel was cancelRequested.
	isProposed, err := r.Log.HasRun(ctx, run)
	if err == nil && isProposed {
		if cancelRequested, err := r.Log.CancelRequested(ctx, run); err != nil || !cancelRequested {
			return "", "", err // the run is queued
		}
	}
	return string(runs.OutcomeCancelled), "", err
}

// Outcomes of a firing that has no run.
const (
	outcomeRefused = "refused"
	outcomeFailed  = "failed"
)
