package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

var knownNames = agents.BuiltIn().With(agents.Names{Agents: []string{"published"}, Programs: []string{"invoice"}, Others: []string{"own_*"}})

func TestUnknownNamesHaveTheirLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		yaml string
		want string // of the error, without the file; "" = all names are known
	}{
		"known": {`name: a
model: openai/any
tools: [calculate, "current_*", "client:anything", "client:*", "agent:published", "handoff:published", "own_tool", "mcp:shop/x", "mcp:shop/*"]
approvals:
  - tools: [calculate, shop_buy, "mcp:shop/x", "*"]
---
kind: mcp
name: shop
url: https://mcp.example
---
kind: script
name: own
turns:
  - steps:
      - calls: [{tool: calculate}, {tool: own_tool}, {tool: a}, {tool: transfer_to_published}, {tool: shop_buy}, {tool: pick}]
---
kind: script
name: unused
turns: [{steps: [{calls: [{tool: of_an_agent_that_is_published_later}]}]}]
---
name: b
model: scripted/own
tools: ["agent:a", "handoff:published", "mcp:shop/*"]
---
name: c
steps: [{name: one, agent: {instructions: x, model: scripted/own, tools: ["client:pick"]}}]
---
name: d
model: scripted/asks
workflow: invoice
---
kind: script
name: asks
turns: [{steps: [{calls: [{tool: tool_of_the_client}]}]}]
---
name: e
workflow: own_program
`, ""},
		"script's call": {`name: a
model: scripted/own
---
kind: script
name: own
turns:
  - steps:
      - calls:
          - tool: calculate
          - tool: calculat
      - calls: [{tool: pick}]
`, `10: /turns/0/steps/0/calls/1/tool: unknown tool "calculat" (did you mean "calculate"?)
11: /turns/0/steps/1/calls/0/tool: unknown tool "pick"`},
		"approval of update_state": {"name: a\nmodel: openai/m\nstate: {write: [{path: /x}]}\napprovals: [{tools: [update_state]}]\n", ""},
		"approval of update_state of a step": {
			"name: a\nmodel: openai/m\nsteps: [{name: one, agent: {state: {write: [{path: /x}]}}}]\napprovals: [{tools: [update_state]}]\n", "",
		},
		"program":    {"name: a\nworkflow: invoce\n", `2: /workflow: unknown program "invoce" (did you mean "invoice"?)`},
		"tool":       {"name: a\nmodel: openai/m\ntools:\n  - current_time\n  - calculat\n", `5: /tools/1: unknown tool "calculat" (did you mean "calculate"?)`},
		"subagent":   {"name: a\nmodel: openai/m\ntools: [\"agent:publishd\"]\n", `3: /tools/0: unknown agent "publishd" (did you mean "published"?)`},
		"handoff":    {"name: a\nmodel: openai/m\ntools: [\"handoff:nobody\"]\n", `3: /tools/0: unknown agent "nobody"`},
		"server":     {"name: a\nmodel: openai/m\ntools: [\"mcp:shop/*\"]\n", `3: /tools/0: unknown MCP server "shop"`},
		"provider":   {"name: a\nmodel: opnai/m\n", `2: /model: unknown model provider "opnai" (did you mean "openai"?)`},
		"script":     {"name: a\nmodel: scripted/dmeo\n", `2: /model: unknown script "dmeo" (did you mean "demo"?)`},
		"summary":    {"name: a\nmodel: openai/m\ncontext: {maxTokens: 2000, policy: summarize, model: nobody/m}\n", `3: /context/model: unknown model provider "nobody"`},
		"title":      {"name: a\nmodel: openai/m\ntitleModel: nobody/m\n", `3: /titleModel: unknown model provider "nobody"`},
		"approval":   {"name: a\nmodel: openai/m\ntools: [\"*\"]\napprovals:\n  - tools: [calcluate]\n", `5: /approvals/0/tools/0: unknown tool "calcluate" (did you mean "calculate"?)`},
		"prediction": {"name: a\nmodel: openai/m\ntools: [calculate]\nstate: {predict: [{key: x, tool: calcluate, argument: expression}]}\n", `4: /state/predict/0/tool: unknown tool "calcluate" (did you mean "calculate"?)`},
		"steps": {`name: a
model: openai/m
tools: ["*"]
steps:
  - {name: one, tool: calculat, args: {}}
  - name: two
    parallel:
      - {name: three, agent: nobody}
      - {name: four, agent: {instructions: x, model: scripted/nothing, tools: [calculatee]}}
  - name: five
    tool: calculate
    args: {}
    compensate: {tool: take_back, args: {}}
`, `5: /steps/0/tool: unknown tool "calculat" (did you mean "calculate"?)
8: /steps/1/parallel/0/agent: unknown agent "nobody"
9: /steps/1/parallel/1/agent/tools/0: unknown tool "calculatee" (did you mean "calculate"?)
9: /steps/1/parallel/1/agent/model: unknown script "nothing"
13: /steps/2/compensate/tool: unknown tool "take_back"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, err := agents.ParseFile("a.yaml", []byte(test.yaml))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := folder.CheckNames(knownNames); err != nil {
				got = strings.ReplaceAll(err.Error(), "a.yaml:", "")
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestNamesOfFolder: files of a folder may name one another.
func TestNamesOfFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"a.yaml": "name: a\nmodel: openai/m\ntools: [\"agent:b\", find, \"agent:c\"]\n",
		"b.yaml": "name: b\nmodel: openai/m\n",
		"t.yaml": "kind: tool\nname: find\nhttp: {method: GET, url: https://shop.example}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := agents.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = folder.CheckNames(knownNames)
	if want := filepath.Join(dir, "a.yaml") + `:3: /tools/2: unknown agent "c"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
