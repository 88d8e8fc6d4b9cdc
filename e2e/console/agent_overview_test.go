package console

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

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
