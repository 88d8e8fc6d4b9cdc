package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/agui"
)

// Values of Wait.Kind.
const (
	WaitTimer = "timer" // until a time
	WaitEvent = "event" // for an event of another system
)

// Wait is an open interrupt that no person needs to decide: it ends with a time or an event.
type Wait struct {
	// ID is the ID of the interrupt.
	ID       string `json:"id"`
	ThreadID string `json:"threadId"`
	// RunID is the run that opened the wait.
	RunID string `json:"runId"`
	Agent string `json:"agent"`
	// Kind is WaitTimer or WaitEvent.
	Kind string `json:"kind"`
	// Event is the type of the event, Match has values of its data by their path.
	Event string         `json:"event"`
	Match map[string]any `json:"match"`
	// Message describes the wait.
	Message  string    `json:"message"`
	OpenedAt time.Time `json:"openedAt"`
	// Until is when a timer ends, or when an event is awaited no longer.
	Until time.Time `json:"until"`
}

// WaitFilter selects waits. Empty members select all.
type WaitFilter struct {
	Kind, Agent, Thread, Event string
}

// Waits returns a page of the open waits of all threads, those that end first at the beginning. A wait
// that has just ended may still be in it.
func (c *Client) Waits(ctx context.Context, f WaitFilter, p Paging) (Document[Page[Wait]], error) {
	return document[Page[Wait]](ctx, c, get("/v1/waits", p.query("kind", f.Kind, "agent", f.Agent, "thread", f.Thread, "event", f.Event)))
}

// ContinueWait continues a run before the end of its wait. data is the data of the event that the run
// receives instead of the awaited one; a timer ignores it. A wait that has ended is a *Problem with
// the code decided or expired.
func (c *Client) ContinueWait(ctx context.Context, thread, id string, data any) error {
	return c.decideWait(ctx, Decision{ThreadID: thread, ID: id, Decision: Answer, Content: EventContent(data)})
}

// CancelWait ends a wait without what it waits for: a step of a pipeline fails with the code rejected,
// and a model receives the reason.
func (c *Client) CancelWait(ctx context.Context, thread, id, reason string) error {
	return c.decideWait(ctx, Decision{ThreadID: thread, ID: id, Decision: Reject, Reason: reason})
}

// decideWait sends one decision.
func (c *Client) decideWait(ctx context.Context, d Decision) error {
	results, err := c.Decide(ctx, d)
	if err != nil {
		return err
	}
	return results[0].Err()
}

// EventContent returns the Content of a Decision that answers a wait with the data of an event.
func EventContent(data any) any {
	return struct {
		Data any `json:"data"`
	}{data}
}

// WaitOf returns the wait that an interrupt of a run is, without ThreadID, RunID, Agent and OpenedAt;
// nil = a person decides the interrupt.
func WaitOf(i agui.Interrupt) *Wait {
	raw, ok := i.Metadata["perdure.wait"]
	if !ok {
		return nil
	}
	w := &Wait{ID: i.ID, Message: i.Message}
	if json.Unmarshal(raw, w) != nil {
		return nil
	}
	w.Until, _ = time.Parse(time.RFC3339Nano, i.ExpiresAt) // zero if it is absent or invalid
	return w
}
