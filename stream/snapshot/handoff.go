package snapshot

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// handOff adds a handoff of the thread.
func (f *fold) handOff(h stream.Handoff) {
	next := &stream.Handed{To: h.To} // other snapshots share the previous value
	if f.r.Handed != nil {
		next.From = slices.Clone(f.r.Handed.From)
	}
	next.From = stream.HandOver(next.From, h)
	f.r.Handed = next
}

// endHandoff ends the handoff if the agent whose run begins did not take part in it. A run of an
// agent that has handed the thread over does not end it: the client may not know of the handoff.
func (f *fold) endHandoff(agent string) {
	if h := f.r.Handed; h != nil && h.To != agent && !slices.Contains(h.From, agent) {
		f.r.Handed = nil
	}
}

// AnsweringAgent returns the agent that answers an input for which the client names an agent: the
// one that the thread was handed over to, if the named agent has handed it over, else the named
// agent.
func (r *Snapshot) AnsweringAgent(asked string) string {
	if r.Handed != nil && slices.Contains(r.Handed.From, asked) {
		return r.Handed.To
	}
	return asked
}
