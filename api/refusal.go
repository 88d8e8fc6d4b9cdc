package api

import (
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// interruptedBy refuses an input that leaves interrupts open: no answer is not a decision.
func interruptedBy(app *temporal.ApplicationError) error {
	var active runs.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem.New(http.StatusConflict, "interrupted", "the thread waits for decisions: answer all of its interrupts in resume, with status cancelled those that you give up")
	p.ActiveRun = active.RunID
	return p
}

// missingResults refuses an input without the results that its agent requires.
func missingResults(app *temporal.ApplicationError) error {
	var active runs.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem.New(http.StatusConflict, "missing_tool_results", "the thread waits for results of the client's tool calls: send a tool message for each, or post them to tool-results")
	p.ActiveRun, p.PendingToolCallIDs = stream.ShownRunID(active.RunID), active.Waiting
	return p
}

// errStillOpen refuses an input whose decisions were taken, but more approvers have to vote.
func errStillOpen(asking string) error {
	p := problem.New(http.StatusConflict, "interrupted", "what the input decides counts, and more people have to approve; when they have, the thread goes on by itself")
	p.ActiveRun, p.Counted = asking, true
	return p
}

func errRunIDReused(run stream.Run) *problem.Problem {
	return problem.New(http.StatusConflict, "run_id_reused", fmt.Sprintf("the run %.100q has begun with another input", run.Shown()))
}

// refusedBy returns the problem for a workflow's refusal of a run.
func refusedBy(run stream.Run, err error) error {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return err
	}
	switch app.Type() {
	case runs.ErrorBusy:
		p := problem.New(http.StatusConflict, "busy", fmt.Sprintf("another run of the thread %.100q is active", run.Thread.ID))
		p.ActiveRun, _ = dispatch.BusyWith(err)
		return p
	case runs.ErrorInterrupted:
		return interruptedBy(app)
	case runs.ErrorMissingResults:
		return missingResults(app)
	case runs.ErrorRunIDReused:
		return errRunIDReused(run)
	case runs.ErrorQueueFull:
		return problem.New(http.StatusTooManyRequests, "queue_full", fmt.Sprintf("too many runs wait for the thread %.100q", run.Thread.ID))
	}
	return err
}
