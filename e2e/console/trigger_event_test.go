package console

import (
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

// awaitTriggeredRun sends events until the trigger of an agent that was published a moment ago has started
// a run on a thread. It returns the run.
func awaitTriggeredRun(t *testing.T, thread, event string) triggeredRun {
	t.Helper()
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	overdue := time.After(kit.WaitTimeout)
	for n := 1; ; n++ {
		sendEvent(t, fmt.Sprintf(`{"specversion": "1.0", "id": "%s-%d", "source": "/shop", "type": %q, "data": {"n": %d}}`, thread, n, event, n))
		resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+thread, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // only the status counts
		if resp.StatusCode == http.StatusOK {
			break
		}
		select {
		case <-pace.C:
		case <-overdue:
			t.Fatalf("the event %s has started no run", event)
		}
	}
	var page struct{ Items []triggeredRun }
	kit.Shared.GetJSON(t, "/v1/threads/"+thread+"/runs", &page)
	return page.Items[len(page.Items)-1]
}
