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

// schedule is the answer about a schedule.
type schedule struct {
	schedules.Schedule
	// ChangedBy is the caller that wrote the definition: the requester of its runs.
	ChangedBy string    `json:"changedBy,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	ChangedAt time.Time `json:"changedAt"`
	Paused    bool      `json:"paused"`
	// PausedBecause is the reason, if a failed run has paused the schedule.
	PausedBecause string      `json:"pausedBecause,omitempty"`
	Next          []time.Time `json:"next"`
	Fired         int         `json:"fired"`
	// Missed counts the times that were too late to catch up, Skipped those at which the run before
	// was active.
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Recent are the latest firings, the last one first.
	Recent []firing `json:"recent,omitempty"`
}

// firing is a time at which a schedule fired, and its run.
type firing struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	FiredAt     time.Time `json:"firedAt"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	// Outcome and Code are those of the run; "" = it is active. "refused" = the thread did not take
	// the run, "failed" = it could not be started.
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	// Active reports whether the run, or one that continues it, is active.
	Active bool `json:"active"`
}

// listSchedules lists the schedules of a tenant, without their inputs and firings.
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
	var page []*schedules.Kept
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

// describeSchedules adds the state that Temporal has. Schedules that Temporal does not know are
// left out.
func (s *Routes) describeSchedules(ctx context.Context, tenant string, page []*schedules.Kept) ([]*schedule, error) {
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

func scheduleOf(k *schedules.Kept, d *client.ScheduleDescription) *schedule {
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

// showSchedule answers with a schedule and its latest firings.
func (s *Routes) showSchedule(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Kept
	if err == nil {
		k, err = s.Schedules.Get(ctx, who.Tenant, request.Segment(c, "schedule"))
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	s.answerSchedule(ctx, c, http.StatusOK, who.Tenant, k)
}

func (s *Routes) answerSchedule(ctx context.Context, c *gin.Context, status int, tenant string, k *schedules.Kept) {
	d, err := s.Clock.Describe(ctx, tenant, k.ID)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	out := scheduleOf(k, d)
	if out.Recent, err = s.firings(ctx, tenant, k, d); err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(status, out)
}

// firings returns the latest firings.
func (s *Routes) firings(ctx context.Context, tenant string, k *schedules.Kept, d *client.ScheduleDescription) (list []firing, err error) {
	for _, recent := range slices.Backward(d.Info.RecentActions) {
		if recent.StartWorkflowResult == nil {
			continue
		}
		id := recent.StartWorkflowResult.WorkflowID
		at, ok := schedules.NominalOf(tenant, k.ID, id)
		if !ok {
			continue
		}
		run := k.RunAt(tenant, at)
		f := firing{ScheduledAt: at, FiredAt: recent.ActualTime.UTC(), ThreadID: run.Thread.ID, RunID: run.ID}
		if f.Active, err = s.lasts(ctx, id); err != nil {
			return nil, err
		}
		if f.Outcome, f.Code, err = s.becameOf(ctx, run, id, f.Active); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// lasts reports whether a firing is active. Temporal does not tell that of overlapping ones.
func (s *Routes) lasts(ctx context.Context, fire string) (bool, error) {
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

// becameOf returns how the run of a firing ended, or why there is none.
func (s *Routes) becameOf(ctx context.Context, run stream.Run, fire string, active bool) (outcome, code string, err error) {
	end, err := s.Log.End(ctx, run)
	if err != nil {
		return "", "", err
	}
	if end != nil {
		ending, err := end.Ending(ctx)
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
		return "", "", fmt.Errorf("api: ask for a firing: %w", err)
	case result.Refused != "":
		return outcomeRefused, result.Refused, nil
	}
	return "", "", nil
}

// withdrawn returns the state of a run without an end whose firing was cancelled or terminated.
func (s *Routes) withdrawn(ctx context.Context, run stream.Run) (outcome, code string, err error) {
	begun, err := s.Log.Begun(ctx, run)
	if err != nil || begun != nil {
		return "", "", err
	}
	known, err := s.Log.Known(ctx, run)
	if err == nil && known {
		if asked, err := s.Log.CancelRequested(ctx, run); err != nil || !asked {
			return "", "", err // it is queued
		}
	}
	return string(runs.OutcomeCancelled), "", err
}

// Outcomes of a firing without a run.
const (
	outcomeRefused = "refused"
	outcomeFailed  = "failed"
)
