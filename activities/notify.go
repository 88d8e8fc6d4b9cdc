package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
)

// Notify is interrupt.notify.v1: it publishes what has happened to interrupts, in this order: the
// audit in the log, the inbox, the event for followers, the webhooks. Each is written once under a
// name of its own, so the same notification again changes nothing.
func (a *Activities) Notify(ctx context.Context, in runs.Notification) (err error) {
	ctx = inRun(ctx, in.Run, in.Agent, in.Revision)
	defer contain(ctx, &err)
	if a.Inbox == nil {
		return nil
	}
	return fail(ctx, a.notify(ctx, in))
}

func (a *Activities) notify(ctx context.Context, in runs.Notification) error {
	asked, err := a.recall(ctx, in)
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

// makeKnown publishes one event.
func (a *Activities) makeKnown(ctx context.Context, in runs.Notification, c runs.Interrupt, e *inbox.Event) error {
	id := eventID(in, &e.Approval)
	entry := inbox.Entry{Tenant: in.Run.Tenant, Event: *e}
	if e.Type != inbox.Opened {
		entry.Event.Approval.Args = nil // the entry about the opening has them
	}
	if err := a.Log.AppendAudit(ctx, runOf(in.Run), id, entry); err != nil {
		return err
	}
	var err error
	switch {
	case e.Type.Settles():
		if err = a.Inbox.Settle(ctx, in.Run.Tenant, &e.Approval); err == nil {
			err = a.Inbox.Archive(ctx, in.Run.Tenant, e)
		}
	case c.Decision == nil: // otherwise it is about to be resolved
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

// eventID identifies the event.
func eventID(in runs.Notification, a *inbox.Approval) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", a.ID, in.Event, in.Number))
	return "evt_" + hex.EncodeToString(sum[:15])
}

// tellWebhooks starts a delivery to each webhook that wants the event.
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
