package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// CloudEvent is an event of another system, with the attributes of CloudEvents 1.0. Runs wait for it
// by its Type and its Data (docs/guides/waits.md). ID, Source and Type are required.
type CloudEvent struct {
	// ID and Source identify the event: a further one with both is a duplicate.
	ID     string `json:"id"`
	Source string `json:"source"`
	// Type is the name for which runs wait, such as payment.received.
	Type    string    `json:"type"`
	Subject string    `json:"subject,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Data is a value that has a JSON form; nil = none.
	Data any `json:"data,omitempty"`
}

// EventReceipt tells that an event is durable.
type EventReceipt struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// Duplicate reports that the server has received an event with this ID and Source before.
	Duplicate bool `json:"duplicate"`
}

// SendEvent sends an event to the runs of the caller's tenant that wait for it, now or in the next 72
// hours. It sends the event again after a temporary failure: the server takes it once.
func (c *Client) SendEvent(ctx context.Context, e CloudEvent) (Document[EventReceipt], error) {
	body, err := json.Marshal(struct {
		SpecVersion string `json:"specversion"`
		CloudEvent
	}{"1.0", e})
	if err != nil {
		return Document[EventReceipt]{}, fmt.Errorf("client: %w", err)
	}
	r := request{method: http.MethodPost, path: "/v1/events", body: body}
	r.header = map[string]string{"Accept": jsonType, "Content-Type": "application/cloudevents+json"}
	return document[EventReceipt](ctx, c, r)
}
