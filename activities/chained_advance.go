package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// chainedPatience bounds an advance in the activity of a call. A longer one gets an activity of its
// own, because the workflow has to learn of the call's end.
const chainedPatience = 5 * time.Second

// chained advances after the call of a step. began is when this attempt began. nil = the workflow
// schedules the advance.
func (a *Activities) chained(ctx context.Context, in runs.ToolCall, answer runs.ToolAnswer, began time.Time) (next *runs.Advanced, err error) {
	defer contain(ctx, &err)
	switch {
	case in.Chained == nil:
		return nil, nil
	case answer.Outcome != runs.OutcomeSuccess && answer.Outcome != runs.OutcomeError:
		return nil, nil // cancelled, or with a question: the workflow decides
	}
	info := activity.GetInfo(ctx) // the deadline is of Temporal's clock, not of this machine's
	now := in.Chained.Now.Add(info.StartedTime.Sub(info.ScheduledTime) + time.Since(began))
	ctx, cancel := context.WithTimeout(ctx, chainedPatience)
	defer cancel()
	advanced, err := a.advance(ctx, in.Advance(answer.Opened, now))
	if err != nil {
		return nil, err
	}
	if answer.Advanced = &advanced; !runs.Fits(answer) {
		return nil, nil // the answer of a separate activity has more room
	}
	return &advanced, nil
}
