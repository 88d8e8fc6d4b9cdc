package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// This file selects the tools of an agent, and handles a worker that lacks one. A tool may come
// from a server that is down, or be on other workers only: the step is retried for ToolGrace, and
// fails then.

// DefaultToolGrace is the value of Activities.ToolGrace if it is 0.
const DefaultToolGrace = time.Minute

// The pauses between the attempts of a step that lacks a tool are so long that it has attempts left
// at the end of its grace.
const (
	// The pause is at least minToolInterval, and allows maxToolAttempts within the grace: fewer
	// than the attempts of a step.
	minToolInterval = 2 * time.Second
	maxToolAttempts = 50
)

// lackingError tells that this worker lacks a tool or a task queue that a step needs. It
// does not count as a failure of the step. cause names what is missing. retry is the pause before
// another attempt, on any worker; 0 = the grace is over, and there is none.
type lackingError struct {
	cause error
	retry time.Duration
}

// Error names what is missing.
func (e *lackingError) Error() string { return "activities: " + e.cause.Error() }

// maxNamesBytes bounds the text of namesIn, in bytes.
const maxNamesBytes = 1 << 10

// what returns what is missing, for histories and clients. The names are from definitions and
// configurations, so they are no content.
func (e *lackingError) what() string { return namesIn(e.cause) }

// namesIn returns the text of errors that are joined as one line.
func namesIn(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxNamesBytes)], "")
}

// Unwrap returns the error that names the tools.
func (e *lackingError) Unwrap() error { return e.cause }

// selectTools returns the tools of this worker that the agent offers its model. The error is a
// lackingError if one of them is missing.
func (a *Activities) selectTools(ctx context.Context, d *agents.Definition) ([]tools.Tool, error) {
	patterns, _ := agents.SplitTools(d.Tools)
	offered, err := a.Tools.Select(patterns)
	if err != nil {
		return nil, a.newLackingError(ctx, err)
	}
	return withStateTool(d.State, offered)
}

// findTool returns the tool of an agent by the name that models use; nil = the agent has none of
// that name. Other tools of the agent may be missing: this worker may serve a task queue of this
// tool only. The error is a lackingError if a missing tool may be the one.
func (a *Activities) findTool(ctx context.Context, d *agents.Definition, name string) (tools.Tool, error) {
	if own, err := stateTool(d.State); own != nil && name == agents.StateTool || err != nil {
		return own, err
	}
	patterns, _ := agents.SplitTools(d.Tools)
	patterns = append(patterns, d.WaitTools()...)
	var missing error
	for _, pattern := range patterns {
		offered, err := a.Tools.Select([]string{pattern})
		if err != nil {
			missing = errors.Join(missing, err)
		}
		for _, t := range offered {
			if t.Spec().Name == name {
				return t, nil
			}
		}
	}
	if missing != nil {
		return nil, a.newLackingError(ctx, missing)
	}
	return nil, nil
}

// AwaitQueue is queue.await.v1: it succeeds if a worker serves the task queue now. Otherwise it
// fails, and Temporal retries it for ToolGrace. The workflow schedules it if no worker has taken a
// call from the queue, and sends the call again afterwards.
func (a *Activities) AwaitQueue(ctx context.Context, in runs.AwaitQueue) (err error) {
	defer recoverPanic(ctx, &err)
	if a.Queues == nil || a.Queues.Served(in.Queue) {
		return nil
	}
	return activityError(ctx, a.newLackingError(ctx, fmt.Errorf("no worker serves the task queue %q", in.Queue)))
}

// CustomToolUnavailable is the name of the custom event that tells clients what a step waits for.
// Its value has reason and until.
const CustomToolUnavailable = "perdure.toolUnavailable"

// reportLacking reports what a step lacks in the worker's log, and to clients with an event, and
// returns err. Other errors it returns unchanged. It reports in the first attempt only, because the
// step may be attempted dozens of times. The event ends the attempt.
func (a *Activities) reportLacking(ctx context.Context, attempt *stream.Attempt, err error) error {
	lacking, ok := errors.AsType[*lackingError](err)
	info := activity.GetInfo(ctx)
	if !ok || attemptOf(ctx) > 1 {
		return err
	}
	until := info.ScheduledTime.Add(a.toolGrace()).UTC()
	logger(ctx).Warn("tools of a run are not available", "missing", lacking.what(), "until", until)
	// The end of the run, or the failure of the step, has the names.
	if lacking.retry == 0 {
		return err
	}
	value, encodeErr := json.Marshal(map[string]any{"reason": lacking.what(), "until": until.Format(time.RFC3339)})
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	// The step waits also if the event cannot be written.
	_ = attempt.Leave(ctx, &agui.Custom{Name: CustomToolUnavailable, Value: value})
	return err
}

// specsOf returns tools as a model is offered them.
func specsOf(offered []tools.Tool) []llm.Tool {
	var specs []llm.Tool
	for _, t := range offered {
		s := t.Spec()
		specs = append(specs, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return specs
}

// toolGrace returns how long a step waits for what it lacks.
func (a *Activities) toolGrace() time.Duration { return cmp.Or(a.ToolGrace, DefaultToolGrace) }

// newLackingError returns the lackingError for a cause. It is retryable within the grace since
// Temporal scheduled the activity, over all attempts.
func (a *Activities) newLackingError(ctx context.Context, cause error) error {
	grace := a.toolGrace()
	lacking := &lackingError{cause: cause}
	if time.Since(activity.GetInfo(ctx).ScheduledTime) < grace {
		lacking.retry = max(minToolInterval, grace/maxToolAttempts)
	}
	return lacking
}
