package stream

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// By a handoff, a tool call of its model, an agent gives its thread to another agent. The other
// agent then has the thread, in later runs too, although clients still name the first one. This
// ends when that agent hands the thread on or back, or when a run of an agent begins that did not
// take part.

// Handoff tells that a thread was handed over. It is part of the Result of the tool call's step.
type Handoff struct {
	From string `json:"from"`
	To   string `json:"to"`
	// OfTenant tells that To is an agent of the tenant. Otherwise it is one of the platform.
	OfTenant bool `json:"ofTenant,omitempty"`
}

// CustomHandoff is the name of the CUSTOM event that tells clients of a handoff.
const CustomHandoff = "perdure.handoff"

// Event returns the CustomHandoff event of the handoff.
func (h Handoff) Event() (agui.Event, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("stream: encode handoff: %w", err)
	}
	return &agui.Custom{Name: CustomHandoff, Value: value}, nil
}

// HandoffTrail is the handoff of a thread: the agent To has it.
type HandoffTrail struct {
	To string `json:"to"`
	// OfTenant is that of the last Handoff.
	OfTenant bool `json:"ofTenant,omitempty"`
	// From are the agents that have handed it over and did not get it back, the first one first.
	From []string `json:"from"`
}

// Referrer returns the tenant for which the name To is looked up, in a thread of a tenant; "" = it is
// an agent of the platform.
func (h *HandoffTrail) Referrer(tenant string) string {
	if h.OfTenant {
		return tenant
	}
	return ""
}

// MaxHandoffTrail bounds HandoffTrail.From. Beyond it the first agent is forgotten: it has the
// thread again if a client names it.
const MaxHandoffTrail = 8

// AppendHandoff returns HandoffTrail.From after one more handoff. It may change from.
func AppendHandoff(from []string, h Handoff) []string {
	from = slices.DeleteFunc(from, func(name string) bool { return name == h.To || name == h.From })
	from = append(from, h.From)
	return from[max(0, len(from)-MaxHandoffTrail):]
}
