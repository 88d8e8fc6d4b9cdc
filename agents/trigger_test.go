package agents_test

import (
	"testing"

	"github.com/perdure/perdure/agents"
)

// TestTriggerThread: an event cannot name a thread that a client cannot name. Threads with control
// characters in their IDs are reserved, for example for keys.
func TestTriggerThread(t *testing.T) {
	t.Parallel()
	trigger := agents.Trigger{Event: "e", Thread: "${event.data}", Input: "x"}
	for data, isID := range map[string]bool{
		"order-1": true, "ü/日本 1": true, "": false, "\x00events": false, "a\nb": false, "a\u0085": false, "a\ufffd": false,
	} {
		thread, _, err := trigger.Evaluate(map[string]any{"data": data})
		if (err == nil) != isID || isID && thread != data {
			t.Errorf("thread of %q = %q, error %v; want an ID: %v", data, thread, err, isID)
		}
	}
}
