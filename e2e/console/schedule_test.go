package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSchedules: a user creates a schedule with the keyboard, fires it, finds its run among the
// firings, pauses it and deletes it.
func TestSchedules(t *testing.T) {
	t.Parallel()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/schedules"))
	tab.Await("h1", "Schedules")
	tab.WantAccessible()
	tab.Press("n")
	dialog := tab.Await("[role=dialog]", "New schedule")
	if dialog == "" {
		t.Fatal("the dialog is empty")
	}
	tab.Type("[role=dialog] >> role=textbox[name=\"ID\"]", "report")
	tab.Type("[role=dialog] >> role=textbox[name=\"Message\"]", "What is 12*7?")
	tab.Click("[role=dialog] >> role=button[name=/Agent/]")
	tab.Click("role=option[name=\"demo\"]")
	tab.WantAccessible()
	tab.Click("[role=dialog] >> role=button[name=\"Create\"]")
	tab.Await("h1", "report")
	tab.Await("main", "It has not fired yet.")
	tab.Press("f")
	tab.Await("table[aria-label=Firings] >> [data-status=success]", "finished")
	tab.WantAccessible()
	tab.Evaluate(`document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "f", repeat: true, bubbles: true }))`, nil) // f is held down
	tab.Press("p")
	tab.Await("h1 + [data-status=paused]", "paused")
	wantFired(t, "report", 1)
	tab.Await("aside", "None while it is paused.")
	tab.AwaitGone("aside li time")
	tab.Click("role=button[name=\"Delete\"]")
	tab.Await("[role=dialog]", "It will not fire again.")
	tab.WantAccessible()
	tab.Click("[role=dialog] >> role=button[name=\"Delete\"]")
	tab.Await("h1", "Schedules")
	tab.AwaitGone("table >> text=report")
}

// wantFired compares how often a schedule has fired.
func wantFired(t *testing.T, id string, want int) {
	t.Helper()
	var got struct{ Fired int }
	if kit.Shared.GetJSON(t, "/v1/schedules/"+id, &got); got.Fired != want {
		t.Errorf("the schedule %s has fired %d times, want %d", id, got.Fired, want)
	}
}

// schedule creates a schedule over the API, or replaces it.
func schedule(t *testing.T, method, path, members string) {
	t.Helper()
	//nolint:bodyclose // RequestAs closes it
	resp := kit.Shared.RequestAs(t, "", method, path, json.RawMessage(`{"agent": "demo", "input": {"messages": [{"role": "user", "content": "What is 12*7?"}]}, `+members+`}`))
	if resp.StatusCode > http.StatusCreated {
		t.Fatalf("%s %s: got %s", method, path, resp.Status)
	}
}

// TestChangeSchedule: a user changes a schedule in a form, and sees a mistake at its field. What
// the form does not have stays. A change that another caller makes meanwhile is shown, and is not
// overwritten unasked.
func TestChangeSchedule(t *testing.T) {
	t.Parallel()
	const path = "/v1/schedules/console-changed"
	schedule(t, http.MethodPost, "/v1/schedules", `"id": "console-changed", "cron": ["0 9 * * 1"], "intervals": [{"every": "240h"}], "timeZone": "UTC", "jitter": "30s", "onBusy": "reject"`)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/schedules/console-changed"), "400 (Bad Request)") // the mistake
	tab.Await("h1", "console-changed")
	tab.Await("aside", "In UTC")
	tab.Await("aside li time", "09:00:")
	tab.Press("e")
	const dialog = "[role=dialog]"
	tab.Await(dialog, "Change console-changed")
	tab.WantAccessible()
	tab.Type(dialog+" >> role=textbox[name=Cron]", "0 25 * * 1")
	tab.Click(dialog + " >> role=button[name=Save]")
	tab.Await(dialog+" >> div:has(> input[aria-invalid=true])", "cron")
	tab.WantAccessible()
	tab.Type(dialog+" >> role=textbox[name=Cron]", "30 8 29 FEB *")
	tab.Await(dialog, "At 08:30, day 29 of the month, in February. Next: ")
	tab.Await(dialog, "Feb 29, 20")
	tab.Type(dialog+" >> role=textbox[name=Cron]", "*/15 9-17 * * 1-5")
	tab.Await(dialog, "Every 15 minutes, in the hours 09 to 17, Monday to Friday. Next: ")
	tab.Type(dialog+" >> role=textbox[name=Cron]", "30 8 * * 1-5")
	tab.Await(dialog, "At 08:30, Monday to Friday. Next: ")
	tab.Type(dialog+" >> role=textbox[name=Message]", "What is 12*8?")
	tab.Type(dialog+" >> role=textbox[name=Note]", "Every workday")
	tab.Click(dialog + " >> role=button[name=Save]")
	tab.AwaitGone(dialog)
	tab.Await("aside", "30 8 * * 1-5")
	tab.Await("aside", "at 08:30, Monday to Friday")
	tab.Await("main", "12*8")
	wantSchedule(t, path, "[30 8 * * 1-5] [{240h}] 30s reject Every workday")

	tab.Press("e")
	tab.Type(dialog+" >> role=textbox[name=Note]", "Mine")
	schedule(t, http.MethodPut, path, `"cron": ["0 7 * * *"], "timeZone": "UTC", "note": "Theirs"`)
	tab.Await(dialog+" >> [role=alert]", "has changed the schedule")
	tab.Await(dialog+" >> role=button[name=Save][disabled=true]", "")
	tab.WantAccessible()
	tab.Click(dialog + " >> role=button[name='Keep mine, to replace it']")
	tab.AwaitGone(dialog + " >> [role=alert]")
	tab.Click(dialog + " >> role=button[name=Save]")
	tab.AwaitGone(dialog)
	wantSchedule(t, path, "[30 8 * * 1-5] []  enqueue Mine")

	tab.Press("e")
	tab.Await(dialog, "Change console-changed")
	schedule(t, http.MethodPut, path, `"cron": ["0 6 * * *"], "timeZone": "UTC", "note": "Theirs again"`)
	tab.Click(dialog + " >> role=button[name='Load that version']")
	tab.AwaitGone(dialog + " >> [role=alert]")
	tab.Await(dialog+" >> role=button[name=Save]", "")
	var note string
	if tab.Evaluate(`[...document.querySelectorAll("[role=dialog] input")].at(-1).value`, &note); note != "Theirs again" {
		t.Errorf("note after the version of the other caller was loaded: got %q", note)
	}
}

// wantSchedule compares members of a schedule.
func wantSchedule(t *testing.T, path, want string) {
	t.Helper()
	var got struct {
		Cron         []string
		Intervals    []struct{ Every string }
		Jitter       string
		OnBusy, Note string
	}
	kit.Shared.GetJSON(t, path, &got)
	if text := fmt.Sprint(got.Cron, got.Intervals, " ", got.Jitter, " ", got.OnBusy, " ", got.Note); text != want {
		t.Errorf("%s: got %s, want %s", path, text, want)
	}
}
