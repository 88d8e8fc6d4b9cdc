package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file publishes what happens to interrupts. The thread's workflow schedules one notification
// at a time, in order, and retries it without a limit. A late attempt may still run concurrently
// with a later notification; every write tolerates that.

// Notify is interrupt.notify.v1: it publishes one event (opened, voted, decided, …) of one or more
// interrupts. For each it writes, in this order: the audit in the log, the inbox, the event for
// followers, the deliveries to webhooks. Each write has an ID that derives from the event, so a
// repetition changes nothing. Without an Inbox it does nothing.
func (a *Activities) Notify(ctx context.Context, in runs.Notification) (err error) {
	ctx = inRun(ctx, in.Run, in.Agent, in.Revision)
	defer recoverPanic(ctx, &err)
	if a.Inbox == nil && a.Events == nil {
		return nil
	}
	return activityError(ctx, a.notify(ctx, in))
}

// notify publishes the event for each interrupt. Client tool calls are left out: the client knows
// them from the run.
func (a *Activities) notify(ctx context.Context, in runs.Notification) error {
	var interruptContext *interruptContext // loaded when it is needed: a wait that opens needs none
	for _, interrupt := range in.Items {
		if interrupt.Client {
			continue
		}
		var kind stream.WaitKind // of a wait
		isWait, hasEnded := interrupt.Question != nil && interrupt.Question.Waits, inbox.EventType(in.Event).Settles()
		if isWait {
			var err error
			if kind, err = a.noteWait(ctx, in, interrupt); err != nil {
				return err
			}
		}
		if isWait && !hasEnded || !isWait && a.Inbox == nil {
			continue
		}
		if interruptContext == nil {
			var err error
			if interruptContext, err = a.loadInterruptContext(ctx, in); err != nil {
				return err
			}
		}
		approval, err := interruptContext.approval(ctx, interrupt)
		if err != nil {
			return err
		}
		event := &inbox.Event{Type: inbox.EventType(in.Event), At: in.At, Approval: *approval}
		// The inbox does not have waits. The audit tells how a wait has ended, and who ended it.
		if isWait {
			if err := a.Log.AppendAudit(ctx, runOf(in.Run), eventID(in, approval), inbox.Entry{Tenant: in.Run.Tenant, Event: *event}); err != nil {
				return err
			}
			if len(approval.Decisions) > 0 {
				telemetry.CountEndedWait(ctx, string(kind), waitEnd(kind, approval.Decisions[len(approval.Decisions)-1]))
			}
			continue
		}
		if err := a.publishEvent(ctx, in, interrupt, event); err != nil {
			return err
		}
	}
	return nil
}

// publishEvent publishes one event of one interrupt. The inbox is written before the event for
// followers, so a client that reads the list and then the events after it misses nothing.
func (a *Activities) publishEvent(ctx context.Context, in runs.Notification, interrupt runs.Interrupt, event *inbox.Event) error {
	id := eventID(in, &event.Approval)
	entry := inbox.Entry{Tenant: in.Run.Tenant, Event: *event}
	// The entry about the opening has the arguments. The others are small.
	if event.Type != inbox.Opened {
		entry.Event.Approval.Args = nil
	}
	// The audit is written first: it is the only one that lasts as long as the thread.
	if err := a.Log.AppendAudit(ctx, runOf(in.Run), id, entry); err != nil {
		return err
	}
	var err error
	switch {
	// A settled interrupt leaves the list, and a late notification cannot bring it back.
	case event.Type.Settles():
		if err = a.Inbox.Settle(ctx, in.Run.Tenant, &event.Approval); err == nil {
			err = a.Inbox.Archive(ctx, in.Run.Tenant, event)
		}
	// The interrupt is open. If it has a decision, the next notification settles it, and the inbox
	// is left alone.
	case interrupt.Decision == nil:
		err = a.Inbox.Put(ctx, in.Run.Tenant, &event.Approval, in.At)
	}
	if err != nil {
		return err
	}
	if err := a.Inbox.Record(ctx, in.Run.Tenant, id, event); err != nil {
		return err
	}
	return a.startDeliveries(ctx, in.Run.Tenant, id, event)
}

// eventID identifies an event: the interrupt, what happened, and the number of the notification. It
// is the same in every attempt.
func eventID(in runs.Notification, a *inbox.Approval) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", a.ID, in.Event, in.Number))
	return "evt_" + hex.EncodeToString(sum[:15])
}

// startDeliveries starts a delivery workflow for each webhook that wants the event. Starting it
// again does nothing.
func (a *Activities) startDeliveries(ctx context.Context, tenant, id string, event *inbox.Event) error {
	if a.Webhooks == nil {
		return nil
	}
	for _, hook := range a.Webhooks.Hooks {
		if !hook.Wants(event.Type, tenant, event.Approval.Agent) {
			continue
		}
		if err := a.StartDelivery(ctx, runs.Delivery{Tenant: tenant, Event: id, Webhook: hook.Name}); err != nil {
			return fmt.Errorf("activities: start delivery: %w", err)
		}
	}
	return nil
}
