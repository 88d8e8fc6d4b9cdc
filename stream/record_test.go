package stream

import (
	"testing"
	"time"
)

// FuzzDecodeRecord checks that any message in the stream is decoded or returns an error.
func FuzzDecodeRecord(f *testing.F) {
	f.Add("p.t.t.r.main", "events 1/model w.x 3 1", []byte(`{"type":"X"}`))
	f.Add("p.t.t.r.main", "done - - 0 0 shared", []byte("{}"))
	f.Add("..", "a b c -1 -1", []byte("\n\n"))
	f.Add("x", "", []byte(nil))
	f.Add("p.t.t.r.t0", "events s w 99999999999999999999 1", []byte(`{"$blob":"x","size":-1}`))
	f.Fuzz(func(t *testing.T, subject, value string, data []byte) {
		r, err := decodeRecord(nil, subject, 1, time.Time{}, value, data)
		if err != nil || hasReference(r.lines) {
			return
		}
		events, err := r.Events(t.Context())
		if err != nil || len(events) != r.events {
			t.Errorf("got %d events of %d, %v, want all", len(events), r.events, err)
		}
		if r.HasResult() {
			var result any
			_ = r.Result(t.Context(), &result) // may be none
		}
	})
}
