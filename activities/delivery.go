package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/runs"
)

// SendWebhook is webhook.send.v1: it sends one event to one receiver, once. The workflow
// webhook.deliver.v1 retries it for up to 24 hours, after the pause that the receiver asked for, if
// any. An answer that rules out a repetition is final, and so is an event that the inbox has
// dropped. A webhook that this worker does not know is retried, because another worker may know it.
// The receiver sees the same event ID in every attempt.
func (a *Activities) SendWebhook(ctx context.Context, in runs.Delivery) (out runs.DeliveryResult, err error) {
	defer recoverPanic(ctx, &err)
	out, err = a.deliver(ctx, in)
	var refusal *webhook.RefusedError
	switch {
	case errors.As(err, &refusal):
		return out, temporal.NewApplicationErrorWithOptions(refusal.Reason, "webhook_refused", temporal.ApplicationErrorOptions{
			NonRetryable: refusal.Final, NextRetryDelay: refusal.After,
		})
	case errors.Is(err, inbox.ErrUnknownEvent):
		return out, temporal.NewNonRetryableApplicationError("the inbox has removed the event", "event_gone", nil)
	}
	return out, activityError(ctx, err)
}

// webhookMessage is the body of a webhook, as Standard Webhooks defines it. Type is "approval."
// with the type of the event.
type webhookMessage struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      webhookData `json:"data"`
}

// webhookData is the member "data" of a webhookMessage.
type webhookData struct {
	Tenant   string         `json:"tenant"`
	Approval inbox.Approval `json:"approval"`
	// ConsoleURL is the address of the approval in the console; "" = it has none.
	ConsoleURL string `json:"consoleUrl,omitempty"`
}

// approvalPage returns the address of an approval in a console (web/src/paths.ts); "" = there is no
// console.
func approvalPage(console string, a *inbox.Approval) string {
	if console == "" {
		return ""
	}
	return console + "/inbox/" + url.PathEscape(a.ThreadID) + "/" + url.PathEscape(a.ID)
}

// deliver reads the event from the inbox and sends it. The approval is shown as the event left it,
// not as it is now.
func (a *Activities) deliver(ctx context.Context, in runs.Delivery) (runs.DeliveryResult, error) {
	if a.Webhooks == nil || a.Inbox == nil {
		return runs.DeliveryResult{}, &webhook.RefusedError{Reason: fmt.Sprintf("this worker has no webhook %.64q", in.Webhook)}
	}
	event, err := a.Inbox.Event(ctx, in.Tenant, in.Event)
	if err != nil {
		return runs.DeliveryResult{}, err
	}
	// From here on, log lines and spans name the run.
	ctx = inRun(ctx, runs.Ref{Tenant: in.Tenant, Thread: event.Approval.ThreadID, ID: event.Approval.RunID}, event.Approval.Agent, "")
	data := webhookData{Tenant: in.Tenant, Approval: event.Approval, ConsoleURL: approvalPage(a.Webhooks.ConsoleURL, &event.Approval)}
	body, err := json.Marshal(webhookMessage{Type: "approval." + string(event.Type), Timestamp: event.At, Data: data})
	if err != nil {
		return runs.DeliveryResult{}, fmt.Errorf("activities: encode message: %w", err)
	}
	status, err := a.Webhooks.Send(ctx, in.Webhook, in.Event, body)
	logger(ctx).Debug("a webhook was sent", "webhook", in.Webhook, "event", in.Event, "status", status)
	return runs.DeliveryResult{Status: status}, err
}
