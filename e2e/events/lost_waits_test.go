package events

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// unpaid is an agent that needs only the data of its event.
const unpaid = `
name: unpaid
model: openai/mock
steps:
  - name: paid
    event: {name: payment.received, match: {orderId: "${state.order}"}, timeout: "${state.timeout}"}
    onError:
      steps:
        - name: late
          set: [{path: /failure, value: "${error.code}"}]
  - name: done
    when: '"paid" in steps'
    set: [{path: /amount, value: "${steps.paid.data.amount}"}]
---`

// TestLostWaits: if the bucket of waits is lost, no run is stuck. A timer and the timeout of an event end
// their waits, and a caller continues or cancels a run. Only events do not find the run any more.
func TestLostWaits(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, unpaid+definitions)
	timer, _ := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "6s"})
	late, _ := begin(t, p, "unpaid", "perdure:event", map[string]any{"order": 1, "timeout": "6s"})
	continued, toContinue := begin(t, p, "unpaid", "perdure:event", map[string]any{"order": 2, "timeout": "1h"})
	canceled, toCancel := begin(t, p, "unpaid", "perdure:event", map[string]any{"order": 3, "timeout": "1h"})
	awaitWait(t, p.Endpoint, canceled.In.ThreadID)
	if err := connect(t, p).DeleteStream(t.Context(), "KV_PERDURE_waits"); err != nil {
		t.Fatal(err)
	}
	p.Restart(t)
	for thread, decision := range map[string][2]string{
		continued.In.ThreadID: {toContinue.ID, `{"decision":"answer","content":{"data":{"amount":7}}}`},
		canceled.In.ThreadID:  {toCancel.ID, `{"decision":"reject","reason":"sold out"}`},
	} {
		if status, a := kit.Decide(t, p.Endpoint, thread, decision[0], decision[1]); status != http.StatusOK {
			t.Errorf("decision: got %d %v", status, a)
		}
	}
	for f, want := range map[*kit.Follower]stateOf{late: {Failure: "timeout"}, continued: {Amount: 7}, canceled: {Failure: "rejected"}} {
		f.UntilSuccess(t)
		if s := readState(t, p.Endpoint, f.In); s != want {
			t.Errorf("state = %+v, want %+v", s, want)
		}
	}
	timer.UntilSuccess(t)
}
