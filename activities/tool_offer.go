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

// DefaultToolGrace is the default of Activities.ToolGrace.
const DefaultToolGrace = time.Minute

// The pauses between the attempts of a step that lacks a tool are so long that it has attempts left
// at the end of its grace.
const (
	toolInterval = 2 * time.Second
	toolLooks    = 50
)

// lackingError tells that this worker lacks a tool of the agent. retry is when to look for a worker
// that has it; 0 = not again.
type lackingError struct {
	cause error
	retry time.Duration
}

func (e *lackingError) Error() string { return "activities: " + e.cause.Error() }

// maxLacking bounds the names in the message, in bytes.
const maxLacking = 200

// what returns the names. They are from definitions and configurations, so they are no content.
func (e *lackingError) what() string {
	text := strings.ReplaceAll(e.cause.Error(), "\n", "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxLacking)], "")
}

// Unwrap returns the error that names the tools.
func (e *lackingError) Unwrap() error { return e.cause }

// offer selects the tools that an agent offers its model.
func (a *Activities) offer(ctx context.Context, d *agents.Definition) ([]tools.Tool, error) {
	patterns, _ := agents.SplitTools(d.Tools)
	offered, err := a.Tools.Select(patterns)
	if err == nil {
		return offered, nil
	}
	return nil, a.lacking(ctx, err)
}

// findTool selects one tool by the name that models use; nil = the agent has none of that name.
// Other tools of the agent may be missing here: this worker may serve a task queue of this tool.
func (a *Activities) findTool(ctx context.Context, d *agents.Definition, name string) (tools.Tool, error) {
	patterns, _ := agents.SplitTools(d.Tools)
	var lacks error
	for _, pattern := range patterns {
		offered, err := a.Tools.Select([]string{pattern})
		if err != nil {
			lacks = errors.Join(lacks, err)
		}
		for _, t := range offered {
			if t.Spec().Name == name {
				return t, nil
			}
		}
	}
	if lacks != nil {
		return nil, a.lacking(ctx, lacks)
	}
	return nil, nil
}

// Await is queue.await.v1: it waits for workers of a task queue, as long as for workers with a
// tool.
func (a *Activities) Await(ctx context.Context, in runs.AwaitQueue) (err error) {
	defer contain(ctx, &err)
	if a.Queues == nil || a.Queues.Served(in.Queue) {
		return nil
	}
	return fail(ctx, a.lacking(ctx, fmt.Errorf("no worker serves the task queue %q", in.Queue)))
}

// CustomToolUnavailable is the name of the event about missing tools.
const CustomToolUnavailable = "perdure.toolUnavailable"

// tellLacking tells clients and the log what a step lacks, with its first attempt: the step may
// wait for long.
func (a *Activities) tellLacking(ctx context.Context, s runs.Step, attempt *stream.Attempt, err error) error {
	lacking, ok := errors.AsType[*lackingError](err)
	info := activity.GetInfo(ctx)
	if !ok || info.Attempt > 1 {
		return err
	}
	until := info.ScheduledTime.Add(a.grace()).UTC()
	activity.GetLogger(ctx).Warn("a run needs what is not available", "agent", s.Agent, "thread", s.Run.Thread, "run", s.Run.ID, "lacks", lacking.what(), "until", until)
	if lacking.retry == 0 {
		return err // the end of the run, or the step's failure, names it
	}
	value, encodeErr := json.Marshal(map[string]any{"reason": lacking.what(), "until": until.Format(time.RFC3339)})
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	// The step waits also if the event cannot be written.
	_ = attempt.Leave(ctx, &agui.Custom{Name: CustomToolUnavailable, Value: value})
	return err
}

// specsOf are tools as a model is offered them.
func specsOf(offered []tools.Tool) []llm.Tool {
	var specs []llm.Tool
	for _, t := range offered {
		s := t.Spec()
		specs = append(specs, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return specs
}

func (a *Activities) grace() time.Duration { return cmp.Or(a.ToolGrace, DefaultToolGrace) }

// lacking returns the error of a step that lacks something.
func (a *Activities) lacking(ctx context.Context, cause error) error {
	grace := a.grace()
	lacking := &lackingError{cause: cause}
	if time.Since(activity.GetInfo(ctx).ScheduledTime) < grace {
		lacking.retry = max(toolInterval, grace/toolLooks)
	}
	return lacking
}
