package console

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// waitingRun starts a run of an agent in a new thread, up to its wait, and returns the thread.
func waitingRun(t *testing.T, agent, prompt string) (thread string) {
	t.Helper()
	in := kit.NewInput(prompt)
	resp, err := kit.Shared.Post(t.Context(), "/v1/agents/"+agent+"/runs", in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return in.ThreadID
}

// TestWaits: a user sees for which event and how long a run waits, and gives the data of the event
// instead. An event that arrives ends the wait on the page.
func TestWaits(t *testing.T) {
	t.Parallel()
	publish(t, "console-paid", `{name: console-paid, steps: [
		{name: paid, event: {name: console.paid, match: {order.id: "${input.text}"}, timeout: 7d}},
		{name: noted, set: {/amount: "${steps.paid.data.amount}"}}]}`)
	first, second := waitingRun(t, "console-paid", "A-1"), waitingRun(t, "console-paid", "A-2")

	tab := kit.OpenTab(t, kit.Shared.URL("/console/waits?kind=event"))
	tab.Await("h1", "Waiting")
	row := "tr:has(a:text-is('" + first + "'))"
	tab.Await(row, "for the event console.paid")
	tab.Await(row, "where order.id is A-1")
	tab.Await(row+" >> time", "6 d 23 h")
	tab.WantAccessible()
	tab.Resize(390, 844)
	var hidden []string
	tab.Evaluate(`[...document.querySelectorAll("table[aria-label=Waits] :is(a, button)")].filter((control) => {
		const { left, right } = control.getBoundingClientRect();
		return left < 0 || right > innerWidth;
	}).map((control) => control.textContent)`, &hidden)
	if len(hidden) > 0 {
		t.Errorf("links and buttons beyond the edge of a page of 390 pixels: got %q, want none", hidden)
	}
	tab.WantAccessible()
	tab.Click(row + " >> role=button[name=/Continue now/]")
	tab.Await("[role=dialog]", "as if the event console.paid had arrived")
	tab.WantAccessible()
	tab.Type("[role=dialog] >> role=textbox", "{")
	tab.Await("[role=dialog] >> role=button[name=Continue][disabled=true]", "")
	tab.Type("[role=dialog] >> role=textbox", `{"order": {"id": "A-1"}, "amount": 70}`)
	tab.Click("[role=dialog] >> role=button[name=Continue]")
	tab.AwaitGone(row)
	wantAmount(t, first, 70)

	row = "tr:has(a:text-is('" + second + "'))"
	tab.Await(row, "A-2")
	sendEvent(t, `{"specversion": "1.0", "id": "`+second+`", "source": "/shop", "type": "console.paid", "data": {"order": {"id": "A-2"}, "amount": 80}}`)
	tab.AwaitGone(row)
	wantAmount(t, second, 80)

	var page struct {
		Items []struct{ RunID, Continues string }
	}
	kit.Shared.GetJSON(t, "/v1/threads/"+second+"/runs", &page)
	if len(page.Items) != 2 || page.Items[0].Continues != page.Items[1].RunID {
		t.Fatalf("runs = %+v, want the one that the event has continued, and the one before", page.Items)
	}
	tab = kit.OpenTab(t, kit.Shared.URL("/console/threads/"+second+"/runs/"+page.Items[0].RunID+"?tab=content"))
	for _, text := range []string{"event console.paid", "with the ID " + second, "from the source /shop"} {
		tab.Await("[aria-label='Input and output']", text)
	}
	tab.WantAccessible()
}

// TestWaitInChat: a wait is a card with the time left, and no form that asks the user. Its buttons
// continue the run now, or cancel the wait.
func TestWaitInChat(t *testing.T) {
	t.Parallel()
	publish(t, "console-sleeper", `{name: console-sleeper, steps: [{name: rested, wait: {for: 2h}}, {name: noted, set: {/early: "${steps.rested.early}"}}]}`)
	const card = "section[aria-label=Waiting]"
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+waitingRun(t, "console-sleeper", "Rest.")))
	tab.Await(card, "Waits until ")
	tab.Await(card, "continues in 1 h 59 min")
	tab.Await("main", "console-sleeper waits until ")
	tab.AwaitGone("section[aria-label=Question]")
	tab.AwaitGone("role=group[name=Decision]")
	tab.WantAccessible()
	tab.Click(card + " >> role=button[name='Continue now']")
	tab.Await("h1 + [data-status=idle]", "")
	tab.AwaitGone(card)

	thread := waitingRun(t, "console-sleeper", "Rest again.")
	tab = kit.OpenTab(t, kit.Shared.URL("/console/threads?waitingFor=timer&agent=console-sleeper"))
	tab.Await("tr:has-text('Rest again.') >> [data-status=timer]", "waiting")
	tab.Await("tr:has-text('Rest again.')", "for a time")
	tab.WantAccessible()
	tab.Click("text='Rest again.'")
	tab.Await(card, "Waits until ")
	tab.Click(card + " >> role=button[name=Cancel]")
	tab.Await("[role=dialog]", "Cancel the wait?")
	tab.WantAccessible()
	tab.Type("[role=dialog] >> role=textbox[name=Reason]", "No time to rest")
	tab.Click("[role=dialog] >> role=button[name='Cancel the wait']")
	tab.Await("h1 + [data-status=failed]", "")
	var runs struct{ Items []struct{ Code string } }
	if kit.Shared.GetJSON(t, "/v1/threads/"+thread+"/runs", &runs); len(runs.Items) == 0 || runs.Items[0].Code != "rejected" {
		t.Errorf("runs = %+v, want the code rejected", runs.Items)
	}
}

// wantAmount compares what a run has noted in the state of its thread.
func wantAmount(t *testing.T, thread string, want int) {
	t.Helper()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+thread))
	tab.Await("h1 + [data-status=idle]", "")
	var got struct{ State struct{ Amount int } }
	if kit.Shared.GetJSON(t, "/v1/threads/"+thread+"/state", &got); got.State.Amount != want {
		t.Errorf("amount of %s = %d, want %d", thread, got.State.Amount, want)
	}
}

// sendEvent sends a CloudEvent.
func sendEvent(t *testing.T, event string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, kit.Shared.URL("/v1/events"), strings.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/cloudevents+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("event: got %s, want %d", resp.Status, http.StatusAccepted)
	}
}
