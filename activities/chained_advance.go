package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/runs"
)

// A tool step is followed by an advance of the pipeline, with no decision of the workflow in
// between. The activity of the call then makes the advance itself, which saves the round trip of an
// activity. In the log they are two steps with a done record each, so a retry finds what was done.
// workflows/chained_advance.go is the other half.

// chainedTimeout bounds the advance in the activity of a call. The workflow has to learn of the
// call's end: a longer advance gets an activity of its own.
const chainedTimeout = 5 * time.Second

// chained makes the advance after the call of a tool step. It returns nil if in asks for no
// advance, if the call was cancelled or ended with a question, or if the answer
// does not fit into one payload; the workflow then schedules the advance, and finds its done record
// if it was written. The caller treats an error like nil.
func (a *Activities) chained(ctx context.Context, in runs.ToolCall, answer runs.ToolAnswer, attemptStart time.Time) (next *runs.AdvanceResult, err error) {
	defer recoverPanic(ctx, &err)
	switch {
	case in.Chained == nil:
		return nil, nil
	case answer.Outcome != runs.OutcomeSuccess && answer.Outcome != runs.OutcomeError:
		return nil, nil // cancelled, or with a question: the workflow decides
	}
	// Deadlines are of the workflow's clock. Only durations of this machine's clock are added to
	// it.
	info := activity.GetInfo(ctx)
	now := in.Chained.Now.Add(info.StartedTime.Sub(info.ScheduledTime) + time.Since(attemptStart))
	ctx, cancel := context.WithTimeout(ctx, chainedTimeout)
	defer cancel()
	result, err := a.advance(ctx, in.AdvanceAfter(answer.Opened, now))
	if err != nil {
		return nil, err
	}
	if answer.Advanced = &result; !runs.Fits(answer) {
		return nil, nil // the answer of a separate activity has more room
	}
	return &result, nil
}
