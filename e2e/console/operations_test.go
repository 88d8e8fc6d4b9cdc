package console

import (
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
	tab.Press("p")
	tab.Await("h1 + [data-status=paused]", "paused")
	tab.Click("role=button[name=\"Delete\"]")
	tab.Await("[role=dialog]", "It will not fire again.")
	tab.WantAccessible()
	tab.Click("[role=dialog] >> role=button[name=\"Delete\"]")
	tab.Await("h1", "Schedules")
	tab.AwaitGone("table >> text=report")
}

// TestSystem: the page shows that the deployment is ready, its worker with its tools, and the quotas.
func TestSystem(t *testing.T) {
	t.Parallel()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/system"))
	tab.Await("h1 + [data-status=ready]", "ready")
	tab.Await("table[aria-label=Workers]", "calculate")
	tab.Await("table[aria-label='Task queues'] >> [data-status=ready]", "has workers")
	tab.Await("table[aria-label=Quotas]", "streams")
	tab.WantAccessible()
}
