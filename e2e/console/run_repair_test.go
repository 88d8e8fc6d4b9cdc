package console

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// repairedAgent is a pipeline whose third step fails without a member of the state, RATE.
const repairedAgent = `name: console-repaired
model: scripted/console-repaired
tools: [calculate]
steps:
  - {name: first, tool: calculate, args: {expression: "40+2"}}
  - {name: second, tool: calculate, args: {expression: "${string(steps.first)}*2"}}
  - {name: third, tool: calculate, args: {expression: "${string(steps.second)}+RATE"}}
  - {name: fourth, tool: calculate, args: {expression: "${string(steps.third)}+1"}}
`

// TestForkAndRepair: the page of a failed run tells which step failed, and why. With the keyboard
// alone, a user forks the run before that step and continues it: once with another state, and once
// with a draft of the definition. The forks do not repeat the steps before, and finish.
func TestForkAndRepair(t *testing.T) {
	t.Parallel()
	definition := strings.Replace(repairedAgent, "RATE", "${string(state.rate)}", 1)
	publish(t, "console-repaired", definition)
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-repaired/runs", in).Finish(t)
	failedRun := "/console/threads/" + in.ThreadID + "/runs/" + in.RunID
	tab := kit.OpenTab(t, kit.Shared.URL(failedRun))
	tab.Await("[aria-label='Why the run failed']", "The run failed in the step “third”")
	tab.Await("[aria-label='Why the run failed']", `there is no key "rate"`)
	tab.Await("aside h2", "third")

	tab.Press("f")
	awaitForkBefore(tab)
	tab.WantAccessible()
	tabTo(t, tab, "Change of the state")
	tab.Write(`{"rate": `)
	tab.Await("[role=dialog]", "This is not JSON")
	tab.Write("6}")
	tabTo(t, tab, "Fork and continue")
	tab.Press("Enter")
	wantRepaired(t, tab, failedRun)
	tab.Click("main >> text=Graph")
	tab.Await(".react-flow__node:has-text('second')", "not in this run") // but in the thread before the fork
	tab.Await("button[data-step]:has-text('third')", "finished")

	tab.Evaluate("history.go(-2)", nil)
	tab.Await("[aria-label='Why the run failed']", "third")
	tabTo(t, tab, "Edit the definition")
	tab.Press("Enter")
	tab.Await("[role=note]", "You repair a run")
	tab.Await(".cm-content[aria-readonly=false]", "state.rate")
	tab.WantAccessible()
	tabTo(t, tab, "Definition of console-repaired")
	pasteHere(tab, strings.Replace(repairedAgent, "RATE", "5", 1))
	tab.Await("main", "No mistakes")
	tabTo(t, tab, "Fork with this draft")
	tab.Press("Enter")
	awaitForkBefore(tab)
	tab.Await("[role=dialog] >> role=button[name=/Definition/]", "Your draft")
	tabTo(t, tab, "Fork and continue")
	tab.Press("Enter")
	wantRepaired(t, tab, failedRun)
}

// awaitForkBefore waits for the dialog that forks before the third step.
func awaitForkBefore(tab *kit.Tab) {
	tab.Await("[role=dialog] >> role=button[name=/Where the fork begins/]", "After the step “second”")
	tab.Await("[role=dialog]", "It continues with the step “third”.")
}

// wantRepaired waits until the page shows another run, which has finished without the first steps.
func wantRepaired(t *testing.T, tab *kit.Tab, failedRun string) {
	t.Helper()
	tab.AwaitGone("[role=dialog]")
	tab.Await("h1 + [data-status=finished]", "finished")
	tab.Await(rowWith("third step"), "finished")
	tab.Await(rowWith("fourth step"), "finished")
	tab.AwaitGone(rowWith("second step"))
	var path string
	if tab.Evaluate("location.pathname", &path); path == failedRun {
		t.Errorf("the page is still that of the failed run %s", path)
	}
}

// tabTo presses Tab until the focus is on the element with a name.
func tabTo(t *testing.T, tab *kit.Tab, name string) {
	t.Helper()
	const most = 80
	var focused string
	for range most {
		tab.Press("Tab")
		tab.Evaluate(`(({activeElement: e}) => e.getAttribute("aria-label") ?? (e.labels?.[0] ?? e).textContent.trim())(document)`, &focused)
		if focused == name {
			return
		}
	}
	t.Fatalf("after %d times Tab, the focus is on %q, want %q", most, focused, name)
}

// TestForkBeforeSpan: the details of a span fork the run before it, also if the run has not failed.
// If nothing had finished before, the run starts over with its input. A fork without a run opens
// the conversation.
func TestForkBeforeSpan(t *testing.T) {
	t.Parallel()
	publish(t, "console-forked", strings.NewReplacer("console-repaired", "console-forked", "RATE", "1").Replace(repairedAgent))
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-forked/runs", in).UntilSuccess(t)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID))
	tab.Click(rowWith("second step"))
	tab.Click("aside >> role=button[name='Fork before this']")
	tab.Await("[role=dialog]", "It continues with the step “second”.")
	tab.Press("Escape")
	tab.AwaitGone("[role=dialog]")
	tab.Click(rowWith("first step"))
	tab.Click("aside >> role=button[name='Fork before this']")
	tab.Await("[role=dialog]", "Nothing had finished before “first”.")
	tab.Await("[role=dialog] >> role=button[name=/Where the fork begins/]", "At the start, with the same input")
	tab.WantAccessible()
	tab.Click("[role=dialog] >> role=button[name='Start over']")
	tab.AwaitGone("[role=dialog]")
	tab.Await("h1 + [data-status=finished]", "finished")
	tab.Await(rowWith("first step"), "finished")
	tab.Await("main", "Threads")
	tab.Evaluate("history.back()", nil)
	tab.Await("aside h2", "first")
	tab.Click("aside >> role=button[name='Fork before this']")
	tab.Click("[role=dialog] >> role=button[name=/Where the fork begins/]")
	tab.Click("role=option[name=/At the end of the run/]")
	tab.Click("[role=dialog] >> role=button[name=Fork]")
	tab.AwaitGone("[role=dialog]")
	tab.Await("textarea[aria-label=Message]", "")
}
