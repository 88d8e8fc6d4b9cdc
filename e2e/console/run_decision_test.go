package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// signedAgent is a pipeline that ends its run to wait for an approval. Another run executes the
// steps after it.
const signedAgent = `name: console-approved
model: scripted/console-approved
tools: [calculate]
steps:
  - name: check
    steps:
      - {name: fee, tool: calculate, args: {expression: "1+1"}}
      - {name: sign_off, approve: {message: "Publish?"}}
      - {name: after, tool: calculate, args: {expression: "1+2"}}
  - {name: never, when: "1 > 2", set: {/never: true}}
  - {name: publish, set: {/published: true}}
`

// TestRunAfterDecision: the graphs of the runs before and after a decision are the same: they have
// the steps of both runs, and the time of the wait. The details of its step decide an approval. A
// step opens its details, also with the keyboard. The input of the run after the decision is the
// decision.
func TestRunAfterDecision(t *testing.T) {
	t.Parallel()
	publish(t, "console-approved", signedAgent)
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-approved/runs", in).Finish(t)
	first := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID+"?tab=graph"))
	step := func(name string) string { return "button[data-step]:has-text('" + name + "')" }
	first.Await(step("sign_off"), "waiting")
	first.Await("[data-status=pending]:has-text('publish')", "")
	first.Click(step("sign_off"))
	first.Await("aside h2", "sign_off")
	first.Await("aside section[aria-label=Decision]", "Publish?")
	first.WantAccessible()
	first.Click("aside >> role=button[name=/^Approve/]")
	first.Await("aside", "You approved it.")
	first.Await(step("publish"), "in run 2")
	first.Await(step("sign_off"), "in run 2")
	wantSteps(t, first, map[string]string{"fee": "finished", "sign_off": "finished, in run 2", "after": "finished, in run 2", "never": "skipped", "publish": "finished, in run 2"})
	first.Click(step("publish"))
	first.Await("aside h2", "publish")
	first.Await("aside >> dd >> text='run 2'", "")
	first.WantAccessible()

	first.Click("aside >> dd >> text='run 2'")
	first.Await("h1 + [data-status=finished]", "finished")
	first.Click("main >> text=Graph")
	first.Await(step("fee"), "in run 1")
	wantSteps(t, first, map[string]string{"fee": "finished, in run 1", "sign_off": "finished", "after": "finished", "never": "skipped", "publish": "finished"})
	first.Evaluate(`document.querySelector("[data-step]:not(:disabled)").focus()`, nil)
	first.Press("ArrowDown", "ArrowDown")
	first.Press("Enter")
	first.Await("aside h2:focus", "sign_off")
	first.Press("Escape")
	first.AwaitGone("aside")
	first.Await(step("sign_off")+":focus", "")

	first.Await("a[href$='/threads/"+in.ThreadID+"']:has-text('go')", "") // the title of the thread
	first.Click("main >> text=Input and output")
	first.Await("main", "Publish?")
	first.Await("[role=region][aria-label='Input and output']", "approve")
	first.WantAccessible()
}

// wantSteps compares the states of steps in the list for screen readers, and that the graph draws
// the same.
func wantSteps(t *testing.T, tab *kit.Tab, want map[string]string) {
	t.Helper()
	for name, state := range want {
		var got struct{ Listed, Drawn string }
		tab.Evaluate(`(() => {
			const item = [...document.querySelectorAll("section[aria-label^='Steps of'] > .visually-hidden li")].find((li) => li.firstChild.textContent === "`+name+`");
			const node = [...document.querySelectorAll(".react-flow__node [data-status]")].find((node) => node.querySelector("[data-step] span span").textContent.startsWith("`+name+`"));
			return {Listed: [...item.childNodes].filter(({nodeType}) => nodeType === 3).map(({data}) => data).join("").split(": ").at(-1), Drawn: node.dataset.status};
		})()`, &got)
		if got.Listed != state || got.Drawn != "skipped" && got.Drawn != "finished" || (got.Drawn == "skipped") != (state == "skipped") {
			t.Errorf("step %s: the list has %q and the graph draws %q, want %q", name, got.Listed, got.Drawn, state)
		}
	}
}
