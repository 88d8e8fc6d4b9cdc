package inbox

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream/streamtest"
)

// deaf is a watch that tells what is there at its beginning, and nothing more.
type deaf struct{ updates chan jetstream.KeyValueEntry }

func (d deaf) Updates() <-chan jetstream.KeyValueEntry { return d.updates }
func (deaf) Stop() error                               { return nil }

// A watch that has stopped telling is begun anew; one that has nothing to tell is not.
func TestAWatchThatTellsNothingIsRenewed(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	s.check = 20 * time.Millisecond
	x := &Index{store: s}
	quiet, stop := context.WithTimeout(t.Context(), 10*s.check)
	defer stop()
	w := deaf{make(chan jetstream.KeyValueEntry, 1)}
	w.updates <- nil
	if x.take(quiet, w, func() {}); quiet.Err() == nil {
		t.Error("a watch of what does not change is renewed")
	}
	a := &Approval{ID: "int_1", RequestedAt: time.Now()}
	if err := s.Put(t.Context(), "shop", a, time.Now()); err != nil {
		t.Fatal(err)
	}
	patient, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	w.updates <- nil
	if x.take(patient, w, func() {}); patient.Err() != nil {
		t.Error("a watch that tells nothing goes on")
	}
}
