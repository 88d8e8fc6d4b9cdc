package runs

import "slices"

// MaxHandoffs is how often a run may hand its thread over.
const MaxHandoffs = 10

// Handoff is a call that hands the thread over.
type Handoff struct {
	// CallID is the call, Tool what the model calls it, Index its place in the message.
	CallID string        `json:"call"`
	Tool   string        `json:"tool"`
	Index  int           `json:"index"`
	To     HandoffTarget `json:"to"`
	// Waited is the call, decided about, where it still waits for others of its turn.
	Waited *Interrupt `json:"waited,omitempty"`
}

// HandoffTarget is an agent that takes a thread over, as it is when the call is asked for.
type HandoffTarget struct {
	AgentRef
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissingResult,omitempty"`
}

// HandoverTrail is how a thread has come to a run's agent.
type HandoverTrail struct {
	// From are the agents that have handed it over and did not get it back, up to maxFrom of them.
	From []string      `json:"from"`
	To   HandoffTarget `json:"to"`
}

// maxHanded is what that takes, in bytes of the message that carries a run on.
const (
	maxHanded = 1 << 10
	maxFrom   = 8
)

// Is tells whether the call is the one at some place in the message.
func (h *Handoff) Is(index int) bool { return h != nil && h.Index == index }

// Append is how a thread has come to an agent that one has handed it over to.
func (h *HandoverTrail) Append(by string, to HandoffTarget) *HandoverTrail {
	next := &HandoverTrail{To: to}
	if h != nil {
		next.From = slices.DeleteFunc(slices.Clone(h.From), func(name string) bool { return name == by || name == to.Agent })
	}
	next.From = append(next.From, by)
	next.From = next.From[max(0, len(next.From)-maxFrom):]
	return next
}

// Redirect is a run as it begins behind one whose thread was handed over so: if its agent has handed the thread over
// since the run was asked for, it is that of the agent that has it.
func (h *HandoverTrail) Redirect(in Input) Input {
	switch {
	case h == nil:
	case slices.Contains(h.From, in.Agent):
		in.Agent, in.Revision, in.Limits = h.To.Agent, h.To.Revision, h.To.Limits
		in.Steps, in.Program = false, ""
		in.OnNewInput, in.OnMissingResult = h.To.OnNewInput, h.To.OnMissingResult
		in.HandedOver = h
	case in.Agent == h.To.Agent:
		in.HandedOver = h
	}
	return in
}

// MaxCarried bounds, in bytes, what is handed on without the usage, which grows by itself up to 4 KiB, and how the
// thread has come to its agent.
const MaxCarried = MaxPayload - 4<<10 - maxHanded
