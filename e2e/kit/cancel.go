package kit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// CancelTime bounds how long a run may stream after a cancel. The announcement of the cancel reaches
// the model calls within milliseconds. Temporal alone would deliver it with their heartbeats, ten
// seconds apart.
const CancelTime = 5 * time.Second

// WantCancelled checks that the client's first run ended as cancelled, in the form of its
// generation.
func WantCancelled(t *testing.T, g Generation, d *ClientProcess) {
	t.Helper()
	if g.Legacy {
		errors := d.Events(0, "RUN_ERROR")
		if len(errors) != 1 || (Event{Data: errors[0]}).Member("code") != "cancelled" {
			t.Errorf("events %s %s, want RUN_ERROR cancelled", d.Types(0), errors)
		}
		return
	}
	events := d.Events(0, "RUN_FINISHED")
	if len(events) != 1 || Outcome(Event{Data: events[0]}) != "cancelled" {
		t.Errorf("events %s %s, want RUN_FINISHED with the outcome cancelled", d.Types(0), events)
	}
}

// Outcome returns the type of the outcome in a RUN_FINISHED; "" = it has none.
func Outcome(e Event) string {
	var finished struct {
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(e.Data, &finished)
	return finished.Outcome.Type
}

// WantPartial checks that the conversation keeps the beginning of a cancelled answer.
func WantPartial(t *testing.T, in Input, got []Message, answer string) {
	t.Helper()
	if len(got) != 2 || got[1].Role != "assistant" || got[1].Content == "" || !strings.HasPrefix(answer, got[1].Content) || got[1].Content == answer {
		t.Errorf("messages %+v, want the question and the beginning of the answer", got)
	}
}
