package stream

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// An agent may hand its thread over to another one, by a tool call of its model. The other agent
// then has the thread, in later runs too, although clients still name the first one. This ends when
// the thread is handed on or back, or when a run of an agent begins that did not take part.

// Handoff tells that a thread was handed over. It is part of the tool call's result.
type Handoff struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// CustomHandoff is the name of the event that tells clients of a handoff.
const CustomHandoff = "perdure.handoff"

// Event is that event.
func (h Handoff) Event() (agui.Event, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("stream: encode hand-off: %w", err)
	}
	return &agui.Custom{Name: CustomHandoff, Value: value}, nil
}

// Handed tells how an agent got a thread.
type Handed struct {
	To string `json:"to"`
	// From are the agents that have handed it over and did not get it back, in order.
	From []string `json:"from"`
}

// MaxHanded bounds Handed.From. The first agent is forgotten: it has the thread again if a client
// names it.
const MaxHanded = 8

// HandOver returns Handed.From after one more handoff.
func HandOver(from []string, h Handoff) []string {
	from = slices.DeleteFunc(from, func(name string) bool { return name == h.To || name == h.From })
	from = append(from, h.From)
	return from[max(0, len(from)-MaxHanded):]
}
