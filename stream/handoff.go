package stream

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// An agent may hand its thread over to another one, by a call of its model. From then on that one speaks, in
// later runs too, although clients go on to ask for the first. It is so until the thread is handed on, or back,
// or a run of an agent begins that nobody had handed it to.

// Handoff notes, with the result of the call, that a thread was handed over.
type Handoff struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// CustomHandoff tells clients of it.
const CustomHandoff = "perdure.handoff"

// Event is what clients are told.
func (h Handoff) Event() (agui.Event, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("stream: encode hand-off: %w", err)
	}
	return &agui.Custom{Name: CustomHandoff, Value: value}, nil
}

// Handed is how a thread has come to an agent.
type Handed struct {
	To string `json:"to"`
	// From are the agents that have handed it over and did not get it back, the last one last.
	From []string `json:"from"`
}

// MaxHanded bounds them: the first is forgotten, and speaks again if it is asked for.
const MaxHanded = 8

// HandOver are the agents that have handed a thread over, behind one more time.
func HandOver(from []string, h Handoff) []string {
	from = slices.DeleteFunc(from, func(name string) bool { return name == h.To || name == h.From })
	from = append(from, h.From)
	return from[max(0, len(from)-MaxHanded):]
}
