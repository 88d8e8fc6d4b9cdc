package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// chainedPatience bounds an advance that rides on a call: what takes longer is for an activity of its own, since until then
// nobody is told that the call has come to its end.
const chainedPatience = 5 * time.Second

// chained advances behind the call of a step, if it is to. began is when this attempt did. nil = it is not to, or there is
// an error.
func (a *Activities) chained(ctx context.Context, in runs.ToolCall, answer runs.ToolAnswer, began time.Time) (next *runs.Advanced, err error) {
	defer contain(ctx, &err)
	switch {
	case in.Chained == nil:
		return nil, nil
	case answer.Outcome != runs.OutcomeSuccess && answer.Outcome != runs.OutcomeError:
		return nil, nil // cancelled, or it asks: the workflow decides
	}
	info := activity.GetInfo(ctx) // the clock of this machine is another one than that of deadlines
	now := in.Chained.Now.Add(info.StartedTime.Sub(info.ScheduledTime) + time.Since(began))
	ctx, cancel := context.WithTimeout(ctx, chainedPatience)
	defer cancel()
	advanced, err := a.advance(ctx, in.Advance(answer.Opened, now))
	if err != nil {
		return nil, err
	}
	if answer.Advanced = &advanced; !runs.Fits(answer) {
		return nil, nil // the answer of an activity of its own has more room
	}
	return &advanced, nil
}
