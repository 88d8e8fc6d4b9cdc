package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
)

// The workflow of a run may be terminated, time out, or fail to replay. Then nothing writes the end of the run. A node with a reader of a silent run
// asks Temporal; if the workflow has closed and the log has no end, the node writes one, under the fence. Apart from proposals, cancels,
// forks, and the opening of such a run (lost_run.go), the API writes nothing.

// longestSilence bounds the pause between two looks at a silent run, which doubles. silentRuns bounds how many runs are remembered.
const (
	longestSilence = time.Minute
	silentRuns     = 4096
)

// silences knows when a node may look at a run again, whatever the number of its readers.
type silences struct {
	first time.Duration

	mu   sync.Mutex
	runs map[stream.Run]look
}

type look struct {
	first time.Time
	next  time.Time
	pause time.Duration
}

// due reports whether to look at a run now, and how long its readers have waited for a run that has not begun.
func (s *silences) due(run stream.Run, now time.Time) (waited time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.runs[run]
	if now.Before(l.next) {
		return 0, false
	}
	if len(s.runs) >= silentRuns {
		clear(s.runs)
	}
	if l.first.IsZero() {
		l.first = now.Add(-s.first)
	}
	l.pause = min(max(2*l.pause, s.first), longestSilence)
	l.next = now.Add(l.pause)
	s.runs[run] = l
	return now.Sub(l.first), true
}

// lookAfterSilent is lookAfter for a reader, which ignores failures except for stream.ErrGone.
func (s *Server) lookAfterSilent(ctx context.Context, run stream.Run) error {
	err := s.lookAfter(ctx, run)
	if errors.Is(err, stream.ErrGone) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "the workflow of a silent run could not be checked", "tenant", run.Thread.Tenant, "thread", run.Thread.ID, "run", run.ID, "error", err)
	}
	return nil
}

// lookAfter writes the end of a run whose workflow has closed without one. It returns stream.ErrGone if the thread was purged.
func (s *Server) lookAfter(ctx context.Context, run stream.Run) error {
	waited, due := s.silences.due(run, time.Now())
	if !due {
		return nil
	}
	begun, err := s.Log.Begun(ctx, run)
	switch {
	case err != nil:
		return err
	case begun == nil && s.purged(ctx, run.Thread):
		return stream.ErrGone
	case begun == nil && waited < lostSilences*s.Silence:
		return nil
	case begun == nil:
		return s.lookAfterLost(ctx, run)
	}
	status, err := s.closedAs(ctx, run, begun.Execution)
	if err != nil || status == "" {
		return err
	}
	return s.endFromOutside(ctx, silencePlace(run, begun.Execution), status)
}

func (s *Server) purged(ctx context.Context, thread stream.Thread) bool {
	purged, err := s.Log.Purged(ctx, thread)
	return purged && err == nil
}

func silencePlace(run stream.Run, execution string) stream.Place {
	return stream.Place{Run: run, Lane: stream.LaneMain, Step: "silence", Execution: execution}
}

// endFromOutside writes the end of a run that has begun.
func (s *Server) endFromOutside(ctx context.Context, place stream.Place, status string) error {
	err := s.Log.Supersede(ctx, place, false) // an unfinished answer is not part of the conversation
	if err == nil {
		if thread, err := s.Snapshots.Latest(ctx, place.Run.Thread, 0); err == nil && thread.Handed != nil { // else the list is a cache
			place.Agent = thread.Handed.To
		}
		_, _, err = s.Log.Seal(ctx, place, &agui.RunError{Code: "workflow_" + status, Message: "the run's workflow ended from outside"})
	}
	if err != nil {
		return fmt.Errorf("api: end run %q: %w", place.Run.ID, err)
	}
	s.logger.WarnContext(ctx, "a run was ended whose workflow had closed without ending it", "tenant", place.Run.Thread.Tenant, "thread", place.Run.Thread.ID, "run", place.Run.ID, "status", status)
	return nil
}

// closedAs is how a run's workflow closed: "" = it is open, "lost" = Temporal does not know it. A run that continued as new is in the thread's current
// execution.
func (s *Server) closedAs(ctx context.Context, run stream.Run, execution string) (string, error) {
	status, err := s.statusOf(ctx, run, execution)
	if err == nil && status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		status, err = s.statusOf(ctx, run, "")
	}
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return "lost", nil
	case err != nil:
		return "", fmt.Errorf("api: describe workflow: %w", err)
	}
	return closings[status], nil
}

// statusOf is the status of an execution; "" is the thread's latest.
func (s *Server) statusOf(ctx context.Context, run stream.Run, execution string) (enums.WorkflowExecutionStatus, error) {
	description, err := s.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(run.Thread), execution)
	return description.GetWorkflowExecutionInfo().GetStatus(), err
}

// closings are the ways in which a workflow closes. One that continued as new is open.
var closings = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:   "cancelled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed_out",
}
