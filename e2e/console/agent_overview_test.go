package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestTriggersOfAgent: the page of an agent shows which events start its runs, on which thread and as
// whom, and has no such section for an agent without triggers.
func TestTriggersOfAgent(t *testing.T) {
	t.Parallel()
	publish(t, "console-intake", `name: console-intake
model: scripted/demo
triggers:
  - {event: order.created, match: {country: DE, big: true}, runAs: shop, thread: "order-${event.data.id}", input: "Check ${event.data.id}"}
  - {event: order.paid, input: "Paid", onBusy: reject}
`)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents/console-intake"))
	const table = "table[aria-label=Triggers] >> tr:has-text('%s')"
	created := fmt.Sprintf(table, "order.created")
	for _, text := range []string{`country: "DE"`, "big: true", "order-${event.data.id}", "the service shop", "waits for its turn"} {
		tab.Await(created, text)
	}
	paid := fmt.Sprintf(table, "order.paid")
	for _, text := range []string{"anything", "a new one for each event", "an anonymous caller", "does not begin"} {
		tab.Await(paid, text)
	}
	tab.WantAccessible()
	const want = `order.created with {"big":true,"country":"DE"}, on order-${event.data.id}, as shop`
	if out := kit.Shared.StartCommand(t, "agents", "show", "console-intake").Finish(t, 0); !strings.Contains(out, want) {
		t.Errorf("perdure agents show: %s, want %s", out, want)
	}
	publish(t, "console-intake", "name: console-intake\nmodel: scripted/demo\n")
	tab.AwaitGone("table[aria-label=Triggers]")
	if out := kit.Shared.StartCommand(t, "agents", "show", "console-intake").Finish(t, 0); strings.Contains(out, "trigger") {
		t.Errorf("perdure agents show of an agent without triggers: %s, want none", out)
	}
}

// TestAgentOverview: the page of an agent names the agents that call it, that hand over to it, or
// whose steps run it. The keyboard reads its charts, which have an axis with units, and a table.
func TestAgentOverview(t *testing.T) {
	t.Parallel()
	const name = "console-clerk"
	publish(t, name, "name: "+name+"\nmodel: scripted/demo\n")
	publish(t, "console-caller", "name: console-caller\nmodel: scripted/demo\ntools: [\"agent:"+name+"\"]\n")
	publish(t, "console-handing", "name: console-handing\nmodel: scripted/demo\ntools: [\"handoff:"+name+"\"]\n")
	publish(t, "console-stepping", "name: console-stepping\nmodel: scripted/demo\nsteps: [{name: group, steps: [{name: inner, agent: "+name+"}]}]\n")
	for range 2 {
		kit.Shared.FollowAgent(t, "/v1/agents/"+name+"/runs", kit.NewInput("Hello")).UntilSuccess(t)
	}
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents/"+name))
	for _, user := range []string{"console-caller", "console-handing", "console-stepping"} {
		tab.Await("ul[aria-label=Agents]", user)
	}
	tab.Await("figure:has-text('Runs')", "2")
	tab.Await("figure:has-text('Success')", "100 %")
	tab.Await("figure:has-text('Mean duration')", " s")
	tab.WantAccessible()
	read := func() (text string) {
		tab.Evaluate(`document.activeElement.getAttribute("aria-valuetext") ?? ""`, &text)
		return text
	}
	tabTo(t, tab, "Runs by day")
	if got := read(); !strings.HasSuffix(got, ": succeeded 2, failed 0, cancelled 0") {
		t.Errorf("the last day: got %q, want its two runs", got)
	}
	tab.Press("ArrowLeft")
	if got := read(); !strings.HasSuffix(got, ": succeeded 0, failed 0, cancelled 0") {
		t.Errorf("the day before: got %q, want no run", got)
	}
	tab.Await("figure:has-text('Runs')", "succeeded 0")
	tab.Press("End")
	tab.Await("figure:has-text('Runs')", "succeeded 2")
	tabTo(t, tab, "Table of Runs")
	tab.Press("Enter")
	tab.Await("[aria-label='Values of Runs'] tbody tr", "2")
	tab.WantAccessible()
}
