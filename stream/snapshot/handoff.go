package snapshot

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// hand takes in that the thread was handed over.
func (f *fold) hand(h stream.Handoff) {
	next := &stream.Handed{To: h.To} // others hold the one before
	if f.r.Handed != nil {
		next.From = slices.Clone(f.r.Handed.From)
	}
	next.From = stream.HandOver(next.From, h)
	f.r.Handed = next
}

// askedFor ends the hand-off if a run begins of an agent that has nothing to do with it. A run of one that has handed
// the thread over was asked for before anybody could know.
func (f *fold) askedFor(agent string) {
	if h := f.r.Handed; h != nil && h.To != agent && !slices.Contains(h.From, agent) {
		f.r.Handed = nil
	}
}

// Speaker is the agent that speaks on the thread if a run of another one is asked for: that which has it, if
// that one has handed it over, and else itself.
func (r *Snapshot) Speaker(asked string) string {
	if r.Handed != nil && slices.Contains(r.Handed.From, asked) {
		return r.Handed.To
	}
	return asked
}
