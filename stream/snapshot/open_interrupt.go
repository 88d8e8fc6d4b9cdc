package snapshot

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// OpenInterrupt returns the open interrupt of a call; nil = there is none. question is the number of the question
// of a tool, and 0 for an approval of the call.
func (s *Snapshot) OpenInterrupt(callID string, question int) *agui.Interrupt {
	i := slices.IndexFunc(s.Interrupts, func(interrupt agui.Interrupt) bool {
		source, err := stream.QuestionSourceOf(interrupt)
		return err == nil && source.Number == question && stream.CallOf(interrupt) == callID
	})
	if i < 0 {
		return nil
	}
	return &s.Interrupts[i]
}
