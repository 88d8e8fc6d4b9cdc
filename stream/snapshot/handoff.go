package snapshot

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// addHandoff adds a handoff of the thread.
func (f *folder) addHandoff(h stream.Handoff) {
	next := &stream.HandoffTrail{To: h.To, OfTenant: h.OfTenant} // other snapshots share the previous value
	if f.snap.Handed != nil {
		next.From = slices.Clone(f.snap.Handed.From)
	}
	next.From = stream.AppendHandoff(next.From, h)
	f.snap.Handed = next
}

// endHandoff ends the handoff if the agent whose run begins did not take part in it. A run of an
// agent that has handed the thread over does not end it: the client may not know of the handoff.
func (f *folder) endHandoff(agent string) {
	if h := f.snap.Handed; h != nil && h.To != agent && !slices.Contains(h.From, agent) {
		f.snap.Handed = nil
	}
}

// AnsweringAgent returns the agent that answers an input for which the client names an agent: the
// one that the thread was handed over to, if the named agent has handed it over, else the named
// agent.
func (s *Snapshot) AnsweringAgent(named string) string {
	if s.Handed != nil && slices.Contains(s.Handed.From, named) {
		return s.Handed.To
	}
	return named
}
