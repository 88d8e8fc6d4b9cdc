package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// A tool may wait for a time or an event (tools.Wait). A wait is a question that nobody is asked: it
// ends when it expires, or with an event as the answer.

// waitOf returns what a question waits for, as the log has it; nil = it asks the user.
func waitOf(raised *tools.Raised) *stream.Wait {
	switch w := raised.Wait; {
	case w == nil:
		return nil
	case w.Event == nil:
		return &stream.Wait{Kind: stream.WaitTimer}
	default:
		return &stream.Wait{Kind: stream.WaitEvent, Event: w.Event.Name, Match: w.Event.Match}
	}
}

// noteWait notes a wait that has opened or ended, for those that list waits and for events, and returns
// its kind. An event that has arrived before may end the wait at once.
func (a *Activities) noteWait(ctx context.Context, in runs.Notification, interrupt runs.Interrupt) (stream.WaitKind, error) {
	question, err := a.Log.ToolQuestion(ctx, interrupt.Question.Seq)
	if err != nil {
		return "", err
	}
	if question.Wait == nil {
		return "", fmt.Errorf("activities: record %d has no wait", interrupt.Question.Seq)
	}
	kind := question.Wait.Kind
	if a.Events == nil {
		return kind, nil
	}
	w := &events.Wait{
		ID: interruptID(runOf(in.Run), interrupt.Name()), Tenant: in.Run.Tenant, ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID), Agent: in.Agent,
		Kind: question.Wait.Kind, Event: question.Wait.Event, Match: question.Wait.Match, Message: question.Message,
		OpenedAt: interrupt.Since(in.OpenedAt).UTC(), Until: interrupt.Expires.UTC(),
		CallID: interrupt.ID, Number: interrupt.Question.Number, RunRef: in.Run.ID,
	}
	if interrupt.Decision != nil || in.Event == runs.EventDecided || in.Event == runs.EventExpired {
		return kind, a.Events.Store.Unregister(ctx, w)
	}
	if err := a.Events.Store.Register(ctx, w); err != nil || kind != stream.WaitEvent {
		return kind, err
	}
	return kind, a.Events.FindKept(ctx, w)
}

// waitEnd returns how a wait has ended, for metrics. decision is what has ended it.
func waitEnd(kind stream.WaitKind, decision inbox.Decision) string {
	switch {
	case decision.Decision == string(runs.DecisionExpire) && kind == stream.WaitTimer:
		return telemetry.WaitFired
	case decision.Decision == string(runs.DecisionExpire):
		return telemetry.WaitTimedOut
	case decision.Decision != string(runs.DecisionAnswer):
		return telemetry.WaitCancelled
	case decision.Channel == events.Channel:
		return telemetry.WaitEvent
	}
	return telemetry.WaitContinued
}

// boundWait returns why an agent may not wait so long; "" = it may, and an event without a timeout has
// one now. limit is Limits.MaxWait of the agent.
func boundWait(raised *tools.Raised, limit time.Duration) (refusal string) {
	switch {
	case raised.Wait == nil:
	case raised.ExpiresIn > limit, time.Until(raised.ExpiresAt) > limit:
		return fmt.Sprintf("The wait is too long: at most %s are allowed.", limit)
	case raised.ExpiresIn == 0 && raised.ExpiresAt.IsZero():
		raised.ExpiresIn = limit
	}
	return ""
}
