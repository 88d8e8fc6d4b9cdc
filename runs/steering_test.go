package runs_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestSteeringAfterAnswer: a model call that a lost workflow task has made did not receive the messages
// that were added after its answer. The next call receives them.
func TestSteeringAfterAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[uint64][]uint64{30: {}, 25: {30}, 15: {20, 30}, 5: {10, 20, 30}} {
		var s runs.Steering
		for _, message := range []uint64{10, 20, 30} {
			s.Add(message)
		}
		s.TakePending()
		s.TakeBack(answer)
		if got := s.Pending(); !slices.Equal(got, want) {
			t.Errorf("messages for the call after the answer %d: got %v, want %v", answer, got, want)
		}
	}
}
