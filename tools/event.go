package tools

import (
	"encoding/json"
	"time"
)

// Limits of an [EventPattern].
const (
	// MaxEventName is the maximum length of the name of an event, in bytes.
	MaxEventName = 256
	// MaxMatch is the maximum number of members that a pattern compares, and MaxMatchValue the
	// maximum size of the JSON of each value, in bytes.
	MaxMatch      = 16
	MaxMatchValue = 1 << 10
)

// EventPattern selects events. It selects those with its name whose data has all values of Match.
type EventPattern struct {
	// Name is the type of the event, such as payment.received.
	Name string `json:"name"`
	// Match has values of the event's data by their path: the names of members, joined by dots.
	// Values are strings, numbers, booleans and null.
	Match map[string]any `json:"match,omitempty"`
}

// Event is an event from outside, with the attributes of CloudEvents 1.0.
type Event struct {
	// ID and Source identify the event.
	ID      string    `json:"id,omitempty"`
	Source  string    `json:"source,omitempty"`
	Type    string    `json:"type,omitempty"`
	Subject string    `json:"subject,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Data is JSON: text and bytes are strings, the latter in base64.
	Data json.RawMessage `json:"data,omitempty"`
}

// Wait is what a call waits for instead of an answer of the user.
type Wait struct {
	// Event is the event that ends the wait; nil = the call waits for a time only.
	Event *EventPattern
}
