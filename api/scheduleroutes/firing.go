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
	// CreatedAt is when the schedule was created, ChangedAt when its definition last changed.
	// Paused tells that no time fires.
	CreatedAt time.Time `json:"createdAt"`
	ChangedAt time.Time `json:"changedAt"`
	Paused    bool      `json:"paused"`
	// PausedBecause is Temporal's note about the pause: the failure of a run, or that a request has
	// paused the schedule. "" = it is not paused.
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

// listSchedules serves GET /v1/schedules: the schedules of the caller's tenant, without their
// inputs and firings.
func (s *Routes) listSchedules(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	answer := struct {
		Items      []*schedule `json:"items"`
		NextCursor string      `json:"nextCursor,omitempty"`
	}{Items: []*schedule{}}
	limit, err := request.Limit(c)
	who, unknown := request.Principal(ctx)
	err = errors.Join(err, unknown)
	var page []*schedules.Stored
	if err == nil {
		page, answer.NextCursor, err = s.Schedules.List(ctx, who.Tenant, c.Query("cursor"), limit)
	}
	if err == nil {
		answer.Items, err = s.describeSchedules(ctx, who.Tenant, page)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

// descriptions bounds the concurrent requests to Temporal for one page.
const descriptions = 8

// describeSchedules returns the schedules of a page with their state in Temporal. It omits those
// that Temporal does not know: their creation or deletion was interrupted. So a page may be short.
func (s *Routes) describeSchedules(ctx context.Context, tenant string, page []*schedules.Stored) ([]*schedule, error) {
	all := make([]*schedule, len(page))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(descriptions)
	for i, k := range page {
		group.Go(func() error {
			d, err := s.Clock.Describe(ctx, tenant, k.ID)
			if err != nil && !errors.Is(err, schedules.ErrUnknown) {
				return err
			}
			if err == nil {
				// Each index belongs to one goroutine, so all needs no lock.
				all[i] = scheduleOf(k, d)
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
func scheduleOf(k *schedules.Stored, d *client.ScheduleDescription) *schedule {
	out := &schedule{
		Schedule: k.Schedule, CreatedAt: k.CreatedAt, ChangedAt: k.ChangedAt, Next: []time.Time{},
		Fired: d.Info.NumActions, Missed: d.Info.NumActionsMissedCatchupWindow, Skipped: d.Info.NumActionsSkippedOverlap,
	}
	if k.Requester != nil {
		out.ChangedBy = k.Requester.Subject
	}
	if state := d.Schedule.State; state != nil && state.Paused {
		out.Paused, out.PausedBecause = true, state.Note
	}
	for _, at := range d.Info.NextActionTimes {
		out.Next = append(out.Next, at.UTC())
	}
	return out
}

// showSchedule serves GET /v1/schedules/{schedule}: a schedule with its latest firings. An unknown
// schedule is a 404.
func (s *Routes) showSchedule(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Stored
	if err == nil {
		k, err = s.Schedules.Get(ctx, who.Tenant, request.Segment(c, "schedule"))
	}
	if err == nil {
		err = s.answerSchedule(ctx, c, http.StatusOK, who.Tenant, k)
	}
	if err != nil {
		s.Refuse(c, err)
	}
}

// answerSchedule answers with a schedule, its state in Temporal, and its latest firings. After an
// error it has answered nothing.
func (s *Routes) answerSchedule(ctx context.Context, c *gin.Context, status int, tenant string, k *schedules.Stored) error {
	d, err := s.Clock.Describe(ctx, tenant, k.ID)
	if err != nil {
		return err
	}
	out := scheduleOf(k, d)
	if out.Recent, err = s.firings(ctx, tenant, k, d); err != nil {
		return err
	}
	c.JSON(status, out)
	return nil
}

// firings returns the latest firings of a schedule, the last one first, with the outcomes of their
// runs. It asks Temporal and the log for each one.
func (s *Routes) firings(ctx context.Context, tenant string, k *schedules.Stored, d *client.ScheduleDescription) (list []firing, err error) {
	for _, recent := range slices.Backward(d.Info.RecentActions) {
		if recent.StartWorkflowResult == nil {
			continue
		}
		id := recent.StartWorkflowResult.WorkflowID
		// The run is not in Temporal's list: it follows from the schedule and the nominal time in
		// the workflow ID.
		at, ok := schedules.NominalTime(tenant, k.ID, id)
		if !ok {
			continue
		}
		run := k.RunAt(tenant, at)
		f := firing{ScheduledAt: at, FiredAt: recent.ActualTime.UTC(), ThreadID: run.Thread.ID, RunID: run.ID}
		if f.Active, err = s.isActive(ctx, id); err != nil {
			return nil, err
		}
		if f.Outcome, f.Code, err = s.outcomeOf(ctx, run, id, f.Active); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// isActive reports whether the workflow of a firing is open. fire is its workflow ID. The
// description of the schedule does not tell that of overlapping firings.
func (s *Routes) isActive(ctx context.Context, fire string) (bool, error) {
	d, err := s.Temporal.DescribeWorkflowExecution(ctx, fire, "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("api: describe firing: %w", err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// outcomeOf returns the outcome and the error code of a firing's run: from the run's terminal
// record, or else from the result of the firing's workflow, if no run has begun. Both are empty if
// the run is active, or if Temporal has forgotten the firing.
func (s *Routes) outcomeOf(ctx context.Context, run stream.Run, fire string, active bool) (outcome, code string, err error) {
	end, err := s.Log.TerminalRecord(ctx, run)
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
	var result runs.FireResult
	err = s.Temporal.GetWorkflow(ctx, fire, "").Get(ctx, &result)
	var failed *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &failed):
		return outcomeFailed, failed.Type(), nil
	case temporal.IsCanceledError(err), temporal.IsTerminatedError(err):
		return s.withdrawn(ctx, run)
	case errors.As(err, &gone):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("api: find a firing: %w", err)
	case result.Refused != "":
		return outcomeRefused, result.Refused, nil
	}
	return "", "", nil
}

// withdrawn returns the outcome of a run without an end whose firing was cancelled or terminated,
// as overlap policies do: cancelled, unless the run has begun or is queued.
func (s *Routes) withdrawn(ctx context.Context, run stream.Run) (outcome, code string, err error) {
	begun, err := s.Log.OpeningOf(ctx, run)
	if err != nil || begun != nil {
		return "", "", err
	}
	// A proposal without a first record: the run is queued, unless a cancel was requested.
	known, err := s.Log.HasRun(ctx, run)
	if err == nil && known {
		if requested, err := s.Log.CancelRequested(ctx, run); err != nil || !requested {
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
