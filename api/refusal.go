package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// errInterrupted returns the 409 interrupted for an input that leaves interrupts open: a missing
// answer is not a decision. ActiveRun is the run that ended with the interrupts.
func errInterrupted(refusal *temporal.ApplicationError) error {
	var active runs.ActiveRun
	if err := refusal.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem.New(http.StatusConflict, "interrupted", "the thread waits for decisions, a time or an event: resolve or cancel all of its interrupts in resume")
	p.ActiveRun = stream.ShownRunID(active.RunID)
	return p
}

// errMissingResults returns the 409 missing_tool_results for an input without the results of client
// tool calls that the thread's agent requires. PendingToolCallIDs lists the calls.
func errMissingResults(refusal *temporal.ApplicationError) error {
	var active runs.ActiveRun
	if err := refusal.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem.New(http.StatusConflict, "missing_tool_results",
		"the thread waits for results of client tool calls: send a tool message for each call, or post the results to tool-results")
	p.ActiveRun, p.PendingToolCallIDs = stream.ShownRunID(active.RunID), active.Waiting
	return p
}

// errVotesMissing returns the 409 interrupted, with Counted, for an input whose decisions were
// counted while a quorum needs more votes. The input itself was not taken: its run did not start.
// interruptedRunID is the ID, in the log, of the run that ended with the interrupts.
func errVotesMissing(interruptedRunID string) error {
	p := problem.New(http.StatusConflict, "interrupted", "the decisions of the input are counted, and a quorum needs more votes: the thread continues when it has them")
	p.ActiveRun, p.Counted = stream.ShownRunID(interruptedRunID), true
	return p
}

// errRunIDReused returns the 409 for an input whose run ID another input has used.
func errRunIDReused(run stream.Run) *problem.Problem {
	return problem.New(http.StatusConflict, "run_id_reused", fmt.Sprintf("the run %.100q was started with another input: use a new runId", run.Shown()))
}

// errOtherEdit returns the 409 other_edit for an input with a vote that cannot be counted. None of
// the input's decisions was counted.
func (s *Server) errOtherEdit(ctx context.Context, in *preparedInput, thread loadedThread, refusal *temporal.ApplicationError) error {
	var vote runs.Decision
	if err := refusal.Details(&vote); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	return s.decisions.OtherEdit(ctx, thread.Snapshot, in.input.Resume, vote)
}

// refusalProblem returns the problem for the error with which a thread's workflow refuses an
// offered run. It returns other errors unchanged: they become a 503. The package dispatch lists the
// types of refusals; each one needs a case here.
func (s *Server) refusalProblem(ctx context.Context, in *preparedInput, thread loadedThread, err error) error {
	var refusal *temporal.ApplicationError
	if !errors.As(err, &refusal) {
		return err
	}
	run := in.run
	switch refusal.Type() {
	case runs.ErrorBusy:
		p := problem.New(http.StatusConflict, "busy", fmt.Sprintf("another run of the thread %.100q is active", run.Thread.ID))
		active, _ := dispatch.BusyWith(err)
		p.ActiveRun = stream.ShownRunID(active)
		return p
	case runs.ErrorInterrupted:
		return errInterrupted(refusal)
	case runs.ErrorMissingResults:
		return errMissingResults(refusal)
	case runs.ErrorOtherEdit:
		return s.errOtherEdit(ctx, in, thread, refusal)
	case runs.ErrorRunIDReused:
		return errRunIDReused(run)
	case runs.ErrorQueueFull:
		return problem.New(http.StatusTooManyRequests, "queue_full", fmt.Sprintf("the queue of the thread %.100q is full", run.Thread.ID))
	}
	return err
}
