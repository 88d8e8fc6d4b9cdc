package budget

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestConflictingWritesAreRetried: when two workers count at the same moment, both counts are kept.
// The worker whose write is refused reads the entry again. A replicated bucket refuses an update
// with another error code than an unreplicated bucket, and nats.go maps both codes to
// ErrKeyRevisionMismatch.
func TestConflictingWritesAreRetried(t *testing.T) {
	t.Parallel()
	for _, err := range []error{jetstream.ErrKeyExists, jetstream.ErrKeyRevisionMismatch} {
		if !isConflict(fmt.Errorf("update: %w", err)) {
			t.Errorf("isConflict(%v) = false, want true", err)
		}
	}
	for _, err := range []error{nil, jetstream.ErrKeyNotFound, errors.New("timeout")} {
		if isConflict(err) {
			t.Errorf("isConflict(%v) = true, want false", err)
		}
	}
}
