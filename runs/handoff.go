package runs

import "slices"

// MaxHandoffs bounds how often a run may hand its thread over.
const MaxHandoffs = 10

// Handoff is a call that hands the thread over.
type Handoff struct {
	// CallID is the tool call, Tool the name by which the model called it, Index its index in the
	// message.
	CallID string        `json:"call"`
	Tool   string        `json:"tool"`
	Index  int           `json:"index"`
	To     HandoffTarget `json:"to"`
	// Interrupt is the decided interrupt of the call, if it had one.
	Interrupt *Interrupt `json:"interrupt,omitempty"`
}

// HandoffTarget is the agent that takes the thread over, as its definition is when the model makes
// the call.
type HandoffTarget struct {
	AgentRef
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissingResult,omitempty"`
}

// HandoffTrail is how a thread came to its present agent by handoffs.
type HandoffTrail struct {
	// From are the agents that handed the thread over and did not get it back, at most the last
	// maxFrom.
	From []string      `json:"from"`
	To   HandoffTarget `json:"to"`
}

// maxHanded bounds the JSON of a HandoffTrail in bytes, maxFrom its agents.
const (
	maxHanded = 1 << 10
	maxFrom   = 8
)

// Is reports whether the call has an index in the message. It is false if h is nil.
func (h *Handoff) Is(index int) bool { return h != nil && h.Index == index }

// Append returns the trail after a further handoff. h may be nil.
func (h *HandoffTrail) Append(by string, to HandoffTarget) *HandoffTrail {
	next := &HandoffTrail{To: to}
	if h != nil {
		next.From = slices.DeleteFunc(slices.Clone(h.From), func(name string) bool { return name == by || name == to.Agent })
	}
	next.From = append(next.From, by)
	next.From = next.From[max(0, len(next.From)-maxFrom):]
	return next
}

// MaxCarried bounds the JSON of an [Input] in bytes, without its usage, for which 4 KiB are
// reserved, and its trail.
const MaxCarried = MaxPayload - 4<<10 - maxHanded
