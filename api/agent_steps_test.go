package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/api/agentroutes"
)

const steppedAgent = `name: stepped
model: test/m
tools: [reserve, release]
steps:
  - name: reserved
    tool: reserve
    args: {secret: "` + mark + `"}
    retry: {attempts: 3}
    compensate: {tool: release}
    onError: {steps: [{name: mended, set: {/mended: true}}]}
  - name: each
    when: state.open
    onError: continue
    map: {items: state.items, steps: [{name: asked, agent: {instructions: "` + mark + `"}}]}
  - name: again
    loop: {max: 2, until: state.done, steps: [{name: delegated, agent: clerk, input: "` + mark + `"}]}
  - name: way
    route:
      - {when: state.left, steps: [{name: both, parallel: [{name: one, set: {/one: 1}}, {name: two, steps: [{name: asks, approve: {message: "` + mark + `"}}]}]}]}
      - {steps: [{name: other, set: {/other: 1}}]}
`

// TestAgentTriggers: callers that may read the definition receive the triggers of an agent, with exact
// numbers and without the input. The list of agents has none.
func TestAgentTriggers(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	const path = "/v1/agents/intake"
	f.do(http.MethodPut, path, `name: intake
model: test/m
triggers:
  - {event: order.created, match: {country: DE, big: 9007199254740993}, runAs: shop, thread: "order-${event.data.id}", input: "`+mark+`", onBusy: reject}
  - {event: order.paid, input: "`+mark+`"}
`, operator...).agent(t, http.StatusCreated)
	const want = `"triggers":[{"event":"order.created","match":{"big":9007199254740993,"country":"DE"},"thread":"order-${event.data.id}","runAs":"shop","onBusy":"reject"},{"event":"order.paid"}]`
	if a := f.do(http.MethodGet, path, "", operator...); !strings.Contains(a.body, want) {
		t.Errorf("the agent for an operator: got %s, want %s", a.body, want)
	}
	for name, a := range map[string]string{
		"the agent for a user": f.do(http.MethodGet, path, "", headersOf("eve")...).body, "the list": f.do(http.MethodGet, "/v1/agents", "", operator...).body,
	} {
		if !strings.Contains(a, `"intake"`) || strings.Contains(a, "triggers") {
			t.Errorf("%s: got %s, want no triggers", name, a)
		}
	}
}

// TestAgentSteps: a caller that may run a pipeline receives its steps, without prompts and
// arguments. Only those that may read the definition receive conditions. The list names the agents
// of steps. A revision that was replaced keeps its steps.
func TestAgentSteps(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	const path = "/v1/agents/stepped"
	created := f.do(http.MethodPut, path, steppedAgent, operator...).agent(t, http.StatusCreated)
	type step = agentroutes.Step
	set := func(name string) step { return step{Name: name, Kind: "set"} }
	steps := func(when, items, until, left string) []step {
		return []step{
			{Name: "reserved", Kind: "tool", Tool: "reserve", Attempts: 3, OnError: []step{set("mended")}, Compensate: &step{Kind: "tool", Tool: "release"}},
			{Name: "each", Kind: "map", IsConditional: true, When: when, Items: items, Continues: true, Steps: []step{{Name: "asked", Kind: "agent"}}},
			{Name: "again", Kind: "loop", Max: 2, Until: until, Steps: []step{{Name: "delegated", Kind: "agent", Agent: "clerk"}}},
			{Name: "way", Kind: "route", Cases: []agentroutes.Case{
				{When: left, Steps: []step{{Name: "both", Kind: "parallel", Steps: []step{
					set("one"), {Name: "two", Kind: "steps", Steps: []step{{Name: "asks", Kind: "approve"}}},
				}}}},
				{Steps: []step{set("other")}},
			}},
		}
	}
	for name, test := range map[string]struct {
		header []string
		want   []step
	}{
		"an operator": {operator, steps("state.open", "state.items", "state.done", "state.left")},
		"a user":      {headersOf("eve"), steps("", "", "", "")},
	} {
		if diff := cmp.Diff(test.want, f.do(http.MethodGet, path, "", test.header...).agent(t, http.StatusOK).Steps); diff != "" {
			t.Errorf("steps for %s (-want +got):\n%s", name, diff)
		}
	}

	var list struct{ Items []agentroutes.Agent }
	if err := json.Unmarshal([]byte(f.do(http.MethodGet, "/v1/agents", "", headersOf("eve")...).body), &list); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(list.Items, func(a agentroutes.Agent) bool { return a.Name == "stepped" }); i < 0 || !slices.Equal(list.Items[i].Agents, []string{"clerk"}) {
		t.Errorf("the list of agents: got %+v, want the agent of a step of stepped", list.Items)
	}

	f.do(http.MethodPut, path, "name: stepped\nmodel: test/m\n", operator...).agent(t, http.StatusOK)
	if now := f.do(http.MethodGet, path, "", headersOf("eve")...).agent(t, http.StatusOK); now.Steps != nil {
		t.Errorf("steps of an agent with a model: got %v, want none", now.Steps)
	}
	before := f.do(http.MethodGet, path+"?revision="+created.Revision, "", headersOf("eve")...).agent(t, http.StatusOK)
	if diff := cmp.Diff(steps("", "", "", ""), before.Steps); diff != "" || before.Revision != created.Revision || before.Scope != agentroutes.ScopePlatform {
		t.Errorf("the replaced revision: got %+v (-want +got):\n%s", before, diff)
	}
	f.do(http.MethodGet, path+"?revision=0123", "", headersOf("eve")...).wantProblem(t, "an unknown revision", http.StatusNotFound, "unknown_revision")
	own := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf(mark), alphaAdmin...).agent(t, http.StatusCreated)
	f.do(http.MethodGet, "/v1/agents/clerk?revision="+own.Revision, "", headersOf("eve")...).agent(t, http.StatusOK)
	f.do(http.MethodGet, "/v1/agents/clerk?revision="+own.Revision, "", beta...).wantProblem(t, "the revision of another tenant", http.StatusNotFound, "unknown_revision")
}
