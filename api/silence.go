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
	"github.com/perdure/perdure/internal/dispatch"
	"github.com/perdure/perdure/stream"
)

// A run whose workflow was terminated, or timed out, or could not be replayed any more, has nobody
// left to write its end. Its silence gives it away: a node that shows a run which says nothing for
// some time asks Temporal, and if the workflow has closed and the log still has no end, writes one,
// under the fence. Besides proposals, wishes to cancel and forks this, and the beginning of such a run if
// it has none (lost_run.go), is all that the api writes.

// longestSilence bounds how long a silent run is left alone: each look at it doubles the pause until
// the next one. silentRuns bounds how many are remembered; forgetting costs a look too many.
const (
	longestSilence = time.Minute
	silentRuns     = 4096
)

// silences remembers when a node may look at a run again, whatever the number of its readers.
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

// due tells whether to look at a run now, and for how long readers here have heard nothing of one that
// has not begun.
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

// lookAfterSilent is lookAfter for a reader, to whom it makes no difference if that fails: but for stream.ErrGone, which
// is that there is nothing to wait for.
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

// lookAfter writes the end of a run whose workflow has closed without one. It fails with stream.ErrGone if the run was
// purged with its thread: what a reader was not shown by then it will not be shown.
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
	err := s.Log.Supersede(ctx, place, false) // half an answer is no part of the conversation
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

// closedAs tells how a run's workflow closed: "" while it runs, "lost" if Temporal knows nothing of it.
// A run that continued as new lives on in the thread's present execution.
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

// statusOf asks for an execution; "" is the thread's latest.
func (s *Server) statusOf(ctx context.Context, run stream.Run, execution string) (enums.WorkflowExecutionStatus, error) {
	description, err := s.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(run.Thread), execution)
	return description.GetWorkflowExecutionInfo().GetStatus(), err
}

// closings names how a workflow may close. One that continued as new has not.
var closings = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:   "cancelled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed_out",
}
