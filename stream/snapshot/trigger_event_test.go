package snapshot

import (
	"testing"

	"github.com/perdure/perdure/stream"
)

// TestTriggerEvent: a run that continues without an input is still that of the event. One with an input
// of its own is not.
func TestTriggerEvent(t *testing.T) {
	t.Parallel()
	event := &stream.TriggerEvent{ID: "o-7", Source: "/shop", Type: "order.created"}
	triggered, continued, sent := RunNote{ID: "r1", Event: event}, RunNote{ID: "r2", Continues: "r1"}, RunNote{ID: "r3"}
	for name, tt := range map[string]struct {
		runs []RunNote
		want *stream.TriggerEvent
	}{
		"no run":    {nil, nil},
		"triggered": {[]RunNote{sent, triggered}, event},
		"continued": {[]RunNote{triggered, continued}, event},
		"sent":      {[]RunNote{triggered, continued, sent}, nil},
	} {
		s := &Snapshot{}
		s.Runs = tt.runs
		if got := s.TriggerEvent(); got != tt.want {
			t.Errorf("%s: event = %+v, want %+v", name, got, tt.want)
		}
	}
}
