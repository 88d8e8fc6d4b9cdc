package budget

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Two workers that count at the same moment both count: the one whose write is refused reads the
// entry again. A replicated bucket refuses an update with another error code than a single one, and
// nats.go maps both to ErrKeyRevisionMismatch.
func TestConflictsAreCountedAgain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{jetstream.ErrKeyExists, jetstream.ErrKeyRevisionMismatch} {
		if !isConflict(fmt.Errorf("update: %w", err)) {
			t.Errorf("%v is no conflict", err)
		}
	}
	for _, err := range []error{nil, jetstream.ErrKeyNotFound, errors.New("timeout")} {
		if isConflict(err) {
			t.Errorf("%v is a conflict", err)
		}
	}
}
