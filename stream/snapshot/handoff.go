package snapshot

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// handOff adds a handoff of the thread.
func (f *fold) handOff(h stream.Handoff) {
	next := &stream.Handed{To: h.To} // others hold the one before
	if f.r.Handed != nil {
		next.From = slices.Clone(f.r.Handed.From)
	}
	next.From = stream.HandOver(next.From, h)
	f.r.Handed = next
}

// endHandoff ends the handoff if a run of an agent begins that did not take part in it. A run of an
// agent that has handed the thread over keeps it: its client may not know of the handoff.
func (f *fold) endHandoff(agent string) {
	if h := f.r.Handed; h != nil && h.To != agent && !slices.Contains(h.From, agent) {
		f.r.Handed = nil
	}
}

// Speaker returns the agent of a run for which a client names another one: the agent that the
// thread was handed over to if the named one took part in that, else the named one.
func (r *Snapshot) Speaker(asked string) string {
	if r.Handed != nil && slices.Contains(r.Handed.From, asked) {
		return r.Handed.To
	}
	return asked
}
