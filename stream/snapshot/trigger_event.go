package snapshot

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// TriggerEvent returns the event that started the last run, or the run that it continues; nil = none did.
func (s *Snapshot) TriggerEvent() *stream.TriggerEvent {
	for _, n := range slices.Backward(s.Runs) {
		if n.Continues == "" {
			return n.Event
		}
	}
	return nil
}
