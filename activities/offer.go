package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// DefaultToolGrace is how long a step waits for a worker that has its agent's tools.
const DefaultToolGrace = time.Minute

// Looks for such a worker, which any attempt may find, are so far apart that a step has attempts left
// when its grace ends.
const (
	toolInterval = 2 * time.Second
	toolLooks    = 50
)

// lackingError says that this worker lacks a tool of the agent. One that has it may be on its way: retry
// is when to look for it, 0 = no more.
type lackingError struct {
	cause error
	retry time.Duration
}

func (e *lackingError) Error() string { return "activities: " + e.cause.Error() }

// Unwrap returns which tools are lacking.
func (e *lackingError) Unwrap() error { return e.cause }

// offer selects the tools of ours that an agent offers its model.
func (a *Activities) offer(ctx context.Context, d *agents.Definition) ([]tools.Tool, error) {
	patterns, _ := agents.SplitTools(d.Tools)
	offered, err := a.Tools.Select(patterns)
	if err == nil {
		return offered, nil
	}
	return nil, a.lacking(ctx, err)
}

// specs are the tools of ours that an agent offers its model, as the model is told of them.
func (a *Activities) specs(ctx context.Context, d *agents.Definition) ([]llm.Tool, error) {
	offered, err := a.offer(ctx, d)
	if err != nil {
		return nil, err
	}
	var specs []llm.Tool
	for _, t := range offered {
		s := t.Spec()
		specs = append(specs, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return specs, nil
}

// lacking is what a step fails with that lacks something of its agent's.
func (a *Activities) lacking(ctx context.Context, cause error) error {
	grace := a.ToolGrace
	if grace == 0 {
		grace = DefaultToolGrace
	}
	lacking := &lackingError{cause: cause}
	if time.Since(activity.GetInfo(ctx).ScheduledTime) < grace {
		lacking.retry = max(toolInterval, grace/toolLooks)
	}
	return lacking
}
