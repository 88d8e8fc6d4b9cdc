package runs_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestSteeringTakenBack: the next call receives the messages that a model call did not receive.
func TestSteeringTakenBack(t *testing.T) {
	t.Parallel()
	for n, want := range [][]uint64{{}, {30}, {20, 30}, {10, 20, 30}} {
		var s runs.Steering
		for _, message := range []uint64{10, 20, 30} {
			s.Add(message)
		}
		s.TakePending()
		s.TakeBack(n)
		if got := s.Pending(); !slices.Equal(got, want) {
			t.Errorf("messages after %d were taken back: got %v, want %v", n, got, want)
		}
	}
}
