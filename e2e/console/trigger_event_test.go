package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestTriggerEvent: the page of a run, and the panel of its conversation, say which event has started the
// run.
func TestTriggerEvent(t *testing.T) {
	t.Parallel()
	const thread = "console-ordered"
	publish(t, "console-ordered", `name: console-ordered
triggers:
  - {event: console.ordered, thread: `+thread+`, input: "Note ${event.data.n}."}
steps:
  - {name: noted, set: {/seen: true}}
`)
	run := awaitTriggeredRun(t, thread, "console.ordered")
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+thread+"/runs/"+run.RunID+"?tab=content"))
	for _, text := range []string{"event console.ordered", "with the ID " + run.Event.ID, "from the source /shop"} {
		tab.Await("[aria-label='Input and output']", text)
	}
	tab.Await("dl >> div:has(dt:text-is('Event'))", "console.ordered")
	tab.WantAccessible()
	tab = kit.OpenTab(t, kit.Shared.URL("/console/threads/"+thread+"?panel=run"))
	tab.Await("ol[aria-label=Runs] >> nth=0", "started by the event console.ordered")
	tab.WantAccessible()
}

// triggeredRun is a run that an event has started.
type triggeredRun struct {
	RunID string
	Event struct{ ID string }
}

// awaitTriggeredRun sends an event, which triggers an agent, and waits until a run has begun on a thread. It
// returns the run.
func awaitTriggeredRun(t *testing.T, thread, event string) triggeredRun {
	t.Helper()
	sendEvent(t, fmt.Sprintf(`{"specversion": "1.0", "id": "%s-1", "source": "/shop", "type": %q, "data": {"n": 1}}`, thread, event))
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	overdue := time.After(kit.WaitTimeout)
	for {
		var page struct{ Items []triggeredRun }
		if resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+thread+"/runs", ""); err != nil {
			t.Fatal(err)
		} else if resp.StatusCode == http.StatusOK {
			err = json.NewDecoder(resp.Body).Decode(&page)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
		} else {
			_ = resp.Body.Close() // the thread has not begun
		}
		if len(page.Items) > 0 {
			return page.Items[0]
		}
		select {
		case <-pace.C:
		case <-overdue:
			t.Fatalf("the event %s has started no run", event)
		}
	}
}
