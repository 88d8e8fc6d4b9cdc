package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const (
	steering = "[data-pending=steering]"
	queued   = "[data-pending=queued]"
)

// whileBusy chooses what happens to the messages that are sent while a run is active.
func whileBusy(tab *kit.Tab, choice string) {
	tab.Click("form[aria-label='New message'] button[aria-haspopup=listbox]")
	tab.Click("[role=option]:has-text('" + choice + "')")
}

// testBusy: a person pauses a run. The messages that they send meanwhile are for the run, or wait in
// the queue, and the page shows which. One of them is not to be answered. The last message stops its
// run.
func testBusy(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/stepper"))
	tab.Await("[aria-label='About stepper']", "Counts, and calculates at the end.")
	tab.Await("[aria-label='About stepper'] dd", "calculate")
	say(tab, "Count")
	tab.Await("[data-kind=text]", "n3 ")
	tab.Click("role=button[name='Pause']")
	tab.Await("[data-status=paused]", "pausing")
	tab.Await("[data-kind=paused]", "The run pauses after the current step.")
	tab.Await("[data-kind=text]", lastNumber)
	tab.Await("[data-status=paused]", "paused")
	tab.Await("[data-kind=paused]", "The run is paused.")

	say(tab, "Hurry")
	tab.Await(steering, "Waits for the next step of the run.")
	whileBusy(tab, "Send after the run")
	say(tab, "The first that waits")
	say(tab, "The second that waits")
	tab.Await(queued+":has-text('The second')", "Waits for its turn")
	tab.WantAccessible()
	tab.Click(queued + ":has-text('The second') >> text=Do not answer it")
	tab.Await(queued+":has-text('The second')", "This message will not be answered.")
	tab.Await("role=status", "This message will not be answered.")
	if text := tab.Await("[data-status=paused]", ""); strings.Contains(text, "The end is") {
		t.Errorf("a paused run has continued:\n%s", text)
	}

	tab.Click("role=button[name='Resume']")
	tab.Await("[data-kind=text]", "I am short.")
	tab.Await("role=button[name='Answer again']", "")
	tab.AwaitGone("[data-pending]")
	wantOutcomes(t, p, threadOf(tab), "success", "success", "cancelled")

	say(tab, "Count")
	tab.Await("[data-kind=text] >> nth=-1", "n3 ")
	tab.Click("role=button[name='Stop the run']")
	tab.Await("[data-kind=stopped]", "Stopped")
	tab.Reload()
	tab.Await("[data-kind=stopped]", "Stopped")
	say(tab, "Count")
	tab.Await("[data-kind=text] >> nth=-1", "n3 ")
	tab.AwaitGone("[data-kind=stopped]")
	whileBusy(tab, "Stop the run, then send")
	say(tab, "Rather not")
	tab.Await("[data-kind=text] >> nth=-1", "I am short.")
	tab.Await("role=button[name='Answer again']", "")
	wantOutcomes(t, p, threadOf(tab), "success", "success", "cancelled", "cancelled", "cancelled", "success")
}

// wantOutcomes waits until a thread has as many ended runs as wanted, and compares their outcomes,
// oldest first. The page may show the text of a run before its end, and a run that ends at once not
// at all.
func wantOutcomes(t *testing.T, p *kit.Perdure, thread string, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		var runs struct{ Items []struct{ Outcome string } }
		p.GetJSON(t, "/v1/threads/"+thread+"/runs", &runs)
		got = nil
		for _, run := range slices.Backward(runs.Items) {
			got = append(got, run.Outcome)
		}
		if len(got) == len(want) && !slices.Contains(got, "") {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes of the runs: got %q, want %q", got, want)
	}
}
