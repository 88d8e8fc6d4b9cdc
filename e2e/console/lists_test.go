package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const brokenAgents = `name: console-broken
model: scripted/console-broken
tools: [calculate]
steps:
  - {name: divide, tool: calculate, args: {expression: "1 / 0"}}
`

// TestListsShowFailures: each list with a thread shows that its last run has failed.
func TestListsShowFailures(t *testing.T) {
	t.Parallel()
	publish(t, "console-broken", brokenAgents)
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-broken/runs", in).Finish(t)
	for path, row := range map[string]string{
		"/console/threads?agent=console-broken": "table[aria-label=Threads] tr",
		"/console/agents/console-broken/runs":   "table[aria-label='Threads of console-broken'] tr",
		"/console":                              "section[aria-labelledby=recent-title] li",
	} {
		tab := kit.OpenTab(t, kit.Shared.URL(path))
		tab.Await(row+":has([href*='"+in.ThreadID+"']) >> [data-status=failed]", "failed")
		tab.WantAccessible()
	}
}

// TestThreadsOnNarrowPages: nothing of the list of threads is outside of a narrow page. The table
// scrolls within its frame.
func TestThreadsOnNarrowPages(t *testing.T) {
	t.Parallel()
	kit.Shared.FollowAgent(t, "/v1/agents/demo/runs", kit.NewInput("hello")).Finish(t)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads"))
	for _, width := range []int{390, 640} {
		tab.Resize(width, 800)
		tab.Await("table[aria-label=Threads]", "demo")
		var outside []string
		tab.Evaluate(`[...document.querySelectorAll("main, main *")].filter((e) => !e.closest("table")
			&& (e.getBoundingClientRect().right > innerWidth || e.matches("main") && e.scrollWidth > e.clientWidth)).map((e) => e.outerHTML.slice(0, 200))`, &outside)
		if len(outside) > 0 {
			t.Errorf("at %d px these are outside of the page: %q", width, outside)
		}
		tab.WantAccessible()
	}
}

// TestNewChatChoosesUsableAgent: the first screen chooses an agent that can work, tells why others
// cannot, and finds agents by name.
func TestNewChatChoosesUsableAgent(t *testing.T) {
	t.Parallel()
	publish(t, "aaa-scriptless", "name: aaa-scriptless\nmodel: scripted/gone\n")
	tab := kit.OpenTab(t, kit.Shared.URL("/console"))
	tab.Await("li:has-text('aaa-scriptless')", `unknown script "gone"`)
	tab.Await("main a[aria-current=true]", "")
	var chosen string
	if tab.Evaluate("document.querySelector('main a[aria-current=true]').innerText", &chosen); strings.Contains(chosen, "aaa-scriptless") {
		t.Errorf("chosen agent: got %q, want one without a warning", chosen)
	}
	tab.WantAccessible()
	tab.Type("role=searchbox[name='Search agents']", "scriptl")
	tab.AwaitGone("section[aria-labelledby=agents-title] li:has-text('assistant')")
	tab.Click("text=aaa-scriptless")
	tab.Await("h1", "Chat with aaa-scriptless")

	tab = kit.OpenTab(t, kit.Shared.URL("/console/agents/aaa-scriptless"))
	tab.Await("[role=note]", `unknown script "gone"`)
	tab.WantAccessible()
}

// TestNewAgent: a user writes an agent from the template, with the name of another agent at first, and
// publishes it. The page confirms it, and the agent answers.
func TestNewAgent(t *testing.T) {
	t.Parallel()
	publish(t, "console-taken", "name: console-taken\nmodel: scripted/demo\n")
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents"))
	tab.Await("table[aria-label=Agents]", "demo")
	tab.Press("n")
	const editor = ".cm-content[aria-readonly=false]"
	tab.Await(editor, "name: helper")
	tab.WantAccessible()
	paste(tab, editor, "name: console-taken\nmodel: scripted/demo\n")
	tab.Await("[role=note]", "There is an agent console-taken already.")
	tab.Await("role=button[name='Publish'][disabled=true]", "")
	tab.WantAccessible()
	paste(tab, editor, "name: console-new\nmodel: scripted/demo\ntool: [calculate]\n")
	tab.Await("section[aria-labelledby=mistakes] li", "line 3")
	paste(tab, editor, "name: console-new\nmodel: scripted/demo\n")
	tab.Reload()
	tab.Await(editor, "console-new")
	tab.AwaitGone("section[aria-labelledby=mistakes]")
	tab.Click("role=button[name='Publish']")
	tab.Await("h1", "console-new")
	tab.Await("[aria-hidden=true]:has-text('Published console-new')", "")
	tab.WantAccessible()
	tab.Click("role=button[name='Chat']")
	tab.Await("h1", "Chat with console-new")
}

// TestUsageOfWaitingRuns: a run that waits is no success, and is no run of its own.
func TestUsageOfWaitingRuns(t *testing.T) {
	t.Parallel()
	publish(t, "console-waiter", "name: console-waiter\nmodel: scripted/demo\ntools: [calculate, current_time]\napprovals: [{tools: [calculate]}]\n")
	in := kit.NewInput("What is 12*7?")
	kit.Shared.FollowAgent(t, "/v1/agents/console-waiter/runs", in).Finish(t)
	events := kit.Shared.FollowThread(t, kit.Input{ThreadID: in.ThreadID, RunID: "none"})
	waiting := events.UntilInterrupt(t, "tool_call")[0]
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents/console-waiter"))
	tab.Await("figure:has-text('Runs')", "Waited for a decision 1 time")
	tab.Await("figure:has-text('Success') >> css=figcaption", "–")
	tab.WantAccessible()
	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, waiting.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	events.Until(t, func(e kit.Event) bool { return e.Type == "RUN_FINISHED" })
}
