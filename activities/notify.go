package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
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
	if a.Inbox == nil {
		return nil
	}
	return fail(ctx, a.notify(ctx, in))
}

// notify publishes the event for each interrupt. Client tool calls are left out: the client knows
// them from the run.
func (a *Activities) notify(ctx context.Context, in runs.Notification) error {
	asked, err := a.loadContext(ctx, in)
	if err != nil {
		return err
	}
	for _, c := range in.Calls {
		if c.Client {
			continue
		}
		approval, err := asked.approval(ctx, c)
		if err != nil {
			return err
		}
		e := &inbox.Event{Type: inbox.EventType(in.Event), At: in.At, Approval: *approval}
		if err := a.makeKnown(ctx, in, c, e); err != nil {
			return err
		}
	}
	return nil
}

// makeKnown publishes one event of one interrupt. The inbox is written before the event for
// followers, so a client that reads the list and then the events after it misses nothing.
func (a *Activities) makeKnown(ctx context.Context, in runs.Notification, c runs.Interrupt, e *inbox.Event) error {
	id := eventID(in, &e.Approval)
	entry := inbox.Entry{Tenant: in.Run.Tenant, Event: *e}
	// The entry about the opening has the arguments. The others are small.
	if e.Type != inbox.Opened {
		entry.Event.Approval.Args = nil
	}
	// The audit is written first: it is the only one that lasts as long as the thread.
	if err := a.Log.AppendAudit(ctx, runOf(in.Run), id, entry); err != nil {
		return err
	}
	var err error
	switch {
	// A settled interrupt leaves the list, and a late notification cannot bring it back.
	case e.Type.Settles():
		if err = a.Inbox.Settle(ctx, in.Run.Tenant, &e.Approval); err == nil {
			err = a.Inbox.Archive(ctx, in.Run.Tenant, e)
		}
	// The interrupt is open. If it has a decision, the next notification settles it, and the inbox
	// is left alone.
	case c.Decision == nil:
		err = a.Inbox.Put(ctx, in.Run.Tenant, &e.Approval, in.At)
	}
	if err != nil {
		return err
	}
	if err := a.Inbox.Record(ctx, in.Run.Tenant, id, e); err != nil {
		return err
	}
	return a.tellWebhooks(ctx, in.Run.Tenant, id, e)
}

// eventID identifies an event: the interrupt, what happened, and the number of the notification. It
// is the same in every attempt.
func eventID(in runs.Notification, a *inbox.Approval) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", a.ID, in.Event, in.Number))
	return "evt_" + hex.EncodeToString(sum[:15])
}

// tellWebhooks starts a delivery workflow for each webhook that wants the event. Starting it again
// does nothing.
func (a *Activities) tellWebhooks(ctx context.Context, tenant, id string, e *inbox.Event) error {
	if a.Webhooks == nil {
		return nil
	}
	for _, h := range a.Webhooks.Hooks {
		if !h.Wants(e.Type, e.Approval.Agent) {
			continue
		}
		if err := a.StartDelivery(ctx, runs.Delivery{Tenant: tenant, Event: id, Webhook: h.Name}); err != nil {
			return fmt.Errorf("activities: start delivery: %w", err)
		}
	}
	return nil
}
