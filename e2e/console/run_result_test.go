package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRunResult: the page of a run shows its result as JSON.
func TestRunResult(t *testing.T) {
	t.Parallel()
	publish(t, "console-result", `name: console-result
model: scripted/demo
tools: [calculate]
steps: [{name: total, tool: calculate, args: {expression: 6*7}}]
output: {value: "{'total': steps.total, 'of': ['lamp']}"}
`)
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-result/runs", in).Finish(t)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID+"?tab=content"))
	tab.Await("section:has(h2:text-is('Result'))", "total: 42")
	tab.Await("section:has(h2:text-is('Result'))", "0: lamp")
	tab.WantAccessible()
}
