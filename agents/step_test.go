package agents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

const pipelineHead = "name: a\nmodel: p/m\ntools: [search, pay]\nsteps:\n"

func TestStepErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, yaml, want string }{
		{"no kind", "  - name: x\n", "a.yaml:5: steps[0] must have one of agent, tool, approve, parallel, map, route, loop, set, steps"},
		{"two kinds", "  - name: x\n    tool: pay\n    agent: b\n", "a.yaml:6: steps[0].tool and agent exclude each other"},
		{"no name", "  - tool: pay\n", "a.yaml:5: steps[0] needs a name"},
		{"bad name", "  - {name: 1x, tool: pay}\n", `a.yaml:5: steps[0].name "1x" must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter`},
		{"taken name", "  - {name: model, tool: pay}\n", `a.yaml:5: steps[0].name "model" is reserved`},
		{"name twice", "  - {name: x, tool: pay}\n  - name: y\n    steps:\n      - {name: x, tool: pay}\n", `a.yaml:8: steps[1].steps[0].name "x" is already the name of steps[0]`},
		{"mistyped key", "  - name: x\n    tol: pay\n", `a.yaml:6: unknown key "steps[0].tol" (did you mean "tool"?)`},
		{"empty", "  []\n", "a.yaml:5: steps must be 1 to 500 entries, not 0"},
		{"instructions of an agent of steps", "  - {name: x, tool: pay}\ninstructions: You pay.\n", `a.yaml:6: instructions must not be combined with steps: each agent step has its own, as in agent: {instructions: …}`},
		{"other tool", "  - name: x\n    tool: serach\n", `a.yaml:6: steps[0].tool "serach" is not one of the agent's tools (did you mean "search"?)`},
		{"tool of the client", "  - name: x\n    tool: mine\n", `a.yaml:6: steps[0].tool "mine" is not one of the agent's tools`},
		{"itself", "  - name: x\n    agent: a\n", `a.yaml:6: steps[0].agent "a" must not be the agent itself`},
		{"itself by a tool", "  - name: x\n    agent: {tools: [\"agent:a\"]}\n", `a.yaml:6: steps[0].agent.tools "agent:a" must not be the agent itself`},
		{"tools of an inline agent", "  - name: x\n    agent:\n      tools:\n        - ok\n        - not ok\n", `a.yaml:9: steps[0].agent.tools: "not ok" must be a tool's name, or a pattern with *`},
		{"limit of an inline agent", "  - name: x\n    agent:\n      limits: {turns: 0}\n", `a.yaml:7: steps[0].agent.limits.turns must be greater than zero`},
		{"input of a tool", "  - {name: x, tool: pay, input: y}\n", `a.yaml:5: steps[0].input is only for agent steps`},
		{"hidden approval", "  - {name: x, visible: false, approve: {message: Go}}\n", `a.yaml:5: steps[0].visible must not be false for an approve step, which people must see`},
		{"visibility as text", "  - {name: x, tool: pay, visible: hidden}\n", `a.yaml:5: steps[0].visible must be true or false, not text`},
		{"arguments of an agent", "  - {name: x, agent: b, args: {}}\n", `a.yaml:5: steps[0].args is only for tool steps`},

		{"condition", "  - name: x\n    tool: pay\n    when: state.x >\n", `a.yaml:7: steps[0].when is not a valid expression: 1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`},
		{"condition that is not boolean", "  - name: x\n    tool: pay\n    when: \"'yes'\"\n", `a.yaml:7: steps[0].when must be true or false`},
		{"assignment for a comparison", "  - name: x\n    tool: pay\n    when: state.x = 1\n", `a.yaml:7: steps[0].when is not a valid expression: 1:9: Syntax error: token recognition error at: '= ' (use == to compare)`},
		{"template for a condition", "  - name: x\n    tool: pay\n    when: ${state.x}\n", `a.yaml:7: steps[0].when is not a valid expression: 1:1: Syntax error: token recognition error at: '$' (write the expression without ${ and })`},
		{"hyphen", "  - {name: x-y, tool: pay}\n  - name: x\n    agent: b\n    input: ${steps.x-y}\n", `a.yaml:8: steps[1].input is not a valid template: ${steps.x-y}: 1:9: undeclared reference to 'y' (did you mean steps["x-y"]?)`},
		{"unknown variable", "  - name: x\n    tool: pay\n    when: itme.ok\n", `a.yaml:7: steps[0].when is not a valid expression: 1:1: undeclared reference to 'itme'`},
		{"round outside of a loop", "  - name: x\n    tool: pay\n    when: round > 1\n", `a.yaml:7: steps[0].when is not a valid expression: 1:1: undeclared reference to 'round'`},
		{"unknown step", "  - {name: search, tool: search}\n  - name: x\n    tool: pay\n    args:\n      deep: [\"${steps.serach}\"]\n", `a.yaml:9: steps[1].args.deep[0] refers to steps.serach, and there is no such step (did you mean "search"?)`},
		{"unknown step by index", "  - name: x\n    tool: pay\n    when: has(steps.x) || steps[\"y\"] == 1\n", `a.yaml:7: steps[0].when refers to steps.x, and that step cannot have run yet`},
		{"later step", "  - name: x\n    tool: pay\n    when: steps.y\n  - {name: y, tool: pay}\n", `a.yaml:7: steps[0].when refers to steps.y, and that step cannot have run yet`},
		{"sibling branch", "  - name: p\n    parallel:\n      - {name: x, tool: pay}\n      - name: y\n        tool: pay\n        when: steps.x\n", `a.yaml:10: steps[0].parallel[1].when refers to steps.x, and that step cannot have run yet`},
		{"other case", "  - name: r\n    route:\n      - when: state.x\n        steps: [{name: x, tool: pay}]\n      - when: steps.x\n        steps: [{name: y, tool: pay}]\n", `a.yaml:9: steps[0].route[1].when refers to steps.x, and that step cannot have run yet`},
		{"step of a map", "  - {name: m, map: {items: \"[1]\", steps: [{name: x, tool: pay}]}}\n  - name: y\n    tool: pay\n    when: steps.x\n", `a.yaml:8: steps[1].when refers to steps.x, which has one output for each item, in the list steps.m`},
		{"group", "  - {name: g, steps: [{name: x, tool: pay}]}\n  - name: y\n    tool: pay\n    when: steps.g\n", `a.yaml:8: steps[1].when refers to steps.g, and that step has no output of its own`},
		{"template", "  - name: x\n    agent: b\n    input: \"${1 + }\"\n", `a.yaml:7: steps[0].input is not a valid template: ${1 + }: 1:5: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`},
		{"open template", "  - name: x\n    agent: b\n    input: \"${a\"\n", `a.yaml:7: steps[0].input is not a valid template: a ${ has no }`},

		{"case never reached", "  - name: r\n    route:\n      - steps: [{name: x, tool: pay}]\n      - {when: state.x, steps: [{name: y, tool: pay}]}\n", `a.yaml:8: steps[0].route[1] is never reached: steps[0].route[0] has no when`},
		{"loop without an end", "  - name: l\n    loop: {until: steps.x, steps: [{name: x, tool: pay}]}\n", `a.yaml:6: steps[0].loop needs max, the most rounds`},
		{"long loop", "  - name: l\n    loop: {max: 1001, steps: [{name: x, tool: pay}]}\n", `a.yaml:6: steps[0].loop.max must be 1 to 1000, not 1001`},
		{"items that are no list", "  - name: m\n    map:\n      items: \"1\"\n      steps: [{name: x, tool: pay}]\n", `a.yaml:7: steps[0].map.items must be a list`},
		{"item name that is reserved", "  - name: m\n    map: {items: state.x, as: state, steps: [{name: x, tool: pay}]}\n", `a.yaml:6: steps[0].map.as "state" must be 1 to 32 letters and digits, begin with a lower-case letter, and not be the name of a variable`},
		{"wide map", "  - name: m\n    map: {items: state.x, concurrency: 101, steps: [{name: x, tool: pay}]}\n", `a.yaml:6: steps[0].map.concurrency must be 1 to 100, not 101`},
		{"branch errors", "  - name: m\n    parallel: {onError: stop, steps: [{name: x, tool: pay}]}\n", `a.yaml:6: steps[0].parallel.onError must be one of fail, continue, not "stop"`},
		{"output without a schema", "  - name: x\n    agent: b\n    output: {repairs: 1}\n", `a.yaml:7: steps[0].output.schema is not a valid JSON Schema: the schema is missing`},
		{"native as a word", "  - name: x\n    agent: b\n    output: {schema: {}, native: yes please}\n", "a.yaml:7: steps[0].output.native must be true or false, not text"},
		{"invalid schema", "  - name: x\n    agent: b\n    output: {schema: {type: 7}}\n", "a.yaml:7: steps[0].output.schema is not a valid JSON Schema: "},
		{"question without words", "  - name: x\n    approve: {approvers: [ann]}\n", `a.yaml:6: steps[0].approve needs a message`},
		{"expiry", "  - name: x\n    approve:\n      message: Go?\n      onExpiry: fail\n", `a.yaml:8: steps[0].approve.onExpiry needs expires`},
		{"no pointer", "  - name: x\n    set: {total: 1}\n", `a.yaml:6: steps[0].set[0] path: "total" must be a JSON pointer, such as /total`},
		{"output of a step", "  - name: x\n    set:\n      - {op: add, path: /perdure.steps/y, value: 1}\n", `a.yaml:7: steps[0].set[0] path: must not be in /perdure.steps, which has the outputs of steps`},
		{"path without a value", "  - name: x\n    set: {\"/by/${caller.subject\": 1}\n", `a.yaml:6: steps[0].set[0] path: is not a valid template: a ${ has no }`},
		{"path with an unknown variable", "  - name: x\n    set: {\"/by/${item}\": 1}\n", `a.yaml:6: steps[0].set[0] path: is not a valid template: ${item}: 1:1: undeclared reference to 'item'`},
		{"computed path among outputs", "  - name: x\n    set: {\"/perdure.steps/${caller.subject}\": 1}\n", `a.yaml:6: steps[0].set[0] path: must not be in /perdure.steps, which has the outputs of steps`},
		{"operation", "  - name: x\n    set:\n      - {op: put, path: /y, value: 1}\n", `a.yaml:7: steps[0].set[0].op must be one of add, remove, replace, move, copy, test, not "put"`},
		{"no tries", "  - {name: x, tool: pay, retry: {interval: 1s}}\n", `a.yaml:5: steps[0].retry.attempts must be 1 to 100, not 0`},
		{"onError", "  - {name: x, tool: pay, onError: ignore}\n", `a.yaml:5: steps[0].onError must be one of fail, continue, not "ignore", or have steps`},
		{"compensation with a name", "  - name: x\n    tool: pay\n    compensate: {name: y, tool: pay}\n", `a.yaml:7: steps[0].compensate.name must not be set: a compensation has the name of its step`},
		{"compensation of a compensation", "  - name: x\n    tool: pay\n    compensate: {tool: pay, compensate: {tool: pay}}\n", `a.yaml:7: steps[0].compensate.compensate must not be in a compensation`},
		{"compensation of a change", "  - name: x\n    set: {/y: 1}\n    compensate: {tool: pay}\n", `a.yaml:7: steps[0].compensate must not be on a set step, which changes only the state`},
		{"compensation by branches", "  - name: x\n    tool: pay\n    compensate: {parallel: [{name: y, tool: pay}]}\n", `a.yaml:7: steps[0].compensate must not contain parallel or map`},
		{"compensation by branches further in", "  - name: x\n    tool: pay\n    compensate: {route: [{steps: [{name: y, parallel: [{name: z, tool: pay}]}]}]}\n", `a.yaml:7: steps[0].compensate must not contain parallel or map, as "y" does`},
		{"compensation by branches when it fails", "  - name: x\n    tool: pay\n    compensate: {tool: pay, onError: {steps: [{name: y, map: {items: state.x, steps: [{name: z, tool: pay}]}}]}}\n", `a.yaml:7: steps[0].compensate must not contain parallel or map, as "y" does`},
		{"step of a map in the place of failures", "  - name: m\n    map: {items: state.x, steps: [{name: y, route: [{steps: [{name: error, tool: pay}]}]}]}\n", `a.yaml:6: steps[0].map.steps[0].route[0].steps[0].name "error" is reserved: the list of a map has the failure of an item there`},
		{"cyclic alias", "  - &s {name: x, steps: [*s]}\n", "a.yaml:5: steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps[0].steps must be at most 12 deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.Parse("a.yaml", []byte(pipelineHead+tt.yaml))
			if err == nil {
				t.Fatal("Parse: got no error, want one")
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			if first != tt.want && (!strings.HasSuffix(tt.want, ": ") || !strings.HasPrefix(first, tt.want)) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestToolsOfSteps: a step may call the same tools as a model: local tools, tools of servers, and
// agents, which may consist of steps.
func TestToolsOfSteps(t *testing.T) {
	t.Parallel()
	head := "name: a\nmodel: p/m\ntools: [search, \"mcp:git/*\", \"agent:helper\"]\nsteps:\n"
	for _, tool := range []string{"search", "git_log", "helper"} {
		if _, err := agents.Parse("a.yaml", []byte(head+"  - {name: x, tool: "+tool+"}\n")); err != nil {
			t.Error(err)
		}
	}
}

func TestModelsOfPipelines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ yaml, want string }{
		{"name: a\nsteps: [{name: x, agent: {instructions: y}}]\n", "a.yaml:2: steps[0].agent needs a model, in the step or in the agent"},
		{"name: a\nsteps: [{name: x, agent: {model: p/m}}]\n", ""},
		{"name: a\nsteps: [{name: x, agent: b}]\n", ""},
		{"name: a\nmodel: p/m\nsteps: [{name: x, agent: {}}]\n", ""},
		{"name: a\nmodel: m\nsteps: [{name: x, agent: b}]\n", `a.yaml:2: model "m" must be provider/model, such as openai/gpt-5-mini`},
		{"name: a\n", "a.yaml:1: model is missing"},
	} {
		got := ""
		if _, err := agents.Parse("a.yaml", []byte(tt.yaml)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.yaml, got, tt.want)
		}
	}
}

func TestLargeTrees(t *testing.T) {
	t.Parallel()
	step := "  - {name: x%, tool: pay}\n"
	var many strings.Builder
	for i := range 501 {
		many.WriteString(strings.Replace(step, "%", strings.Repeat("i", i%60)+string(rune('a'+i/60)), 1))
	}
	if _, err := agents.Parse("a.yaml", []byte(pipelineHead+many.String())); err == nil || !strings.Contains(err.Error(), "steps must be 1 to 500 entries, not 501") {
		t.Errorf("501 steps: got %v, want an error", err)
	}
	name := strings.Repeat("n", 60)
	deep := agents.Step{Name: name + "z", Tool: "pay"}
	for i := range 6 {
		deep = agents.Step{Name: name + string(rune('a'+i)), Steps: []agents.Step{deep}}
	}
	d := &agents.Definition{Name: "a", Model: "p/m", Tools: []string{"pay"}, Steps: []agents.Step{deep}}
	if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "has too long a path") {
		t.Errorf("long names: got %v, want that the path is too long", err)
	}
	for range 12 {
		deep = agents.Step{Name: "s", Steps: []agents.Step{deep}}
	}
	d.Steps = []agents.Step{deep}
	if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "steps must be at most 12 deep") {
		t.Errorf("13 levels: got %v, want an error", err)
	}
}

// TestRevisionOfSteps: the shortest form of a definition and its form with all defaults have one
// revision. Any other difference changes the revision.
func TestRevisionOfSteps(t *testing.T) {
	t.Parallel()
	base := pipelineHead + "  - {name: m, map: {items: state.x, steps: [{name: x, tool: pay, args: {n: 1}}]}}\n"
	same := pipelineHead + "  - {name: m, onError: fail, map: {items: state.x, as: item, concurrency: 10, onError: fail, steps: [{name: x, tool: pay, args: {n: 0x1}, onError: fail}]}}\n"
	if parse(t, base).Revision() != parse(t, same).Revision() {
		t.Error("revision with explicit defaults: got another, want the same")
	}
	for _, other := range []string{"n: 2", "n: \"1\"", "n: 1, o: null"} {
		if parse(t, base).Revision() == parse(t, strings.Replace(base, "n: 1", other, 1)).Revision() {
			t.Errorf("revision with %s: got the same, want another", other)
		}
	}
	list := parse(t, pipelineHead+"  - {name: s, set: {/b: 1, /a: null}}\n")
	ops := parse(t, pipelineHead+"  - {name: s, set: [{path: /b, value: 1}, {path: /a, value: null}]}\n")
	if list.Revision() != ops.Revision() {
		t.Error("revision with operations: got another than with pointers, want the same")
	}
}

// TestRevisionOfStepsIsStable: the canonical form never changes, see TestRevisionNeverChanges.
func TestRevisionOfStepsIsStable(t *testing.T) {
	t.Parallel()
	d := &agents.Definition{Name: "a", Tools: []string{"pay"}, Steps: []agents.Step{
		{Name: "plan", Agent: &agents.AgentStep{Model: "p/m", Instructions: "<x>"}, Input: "${input.text} & more", Output: &agents.Output{Schema: []byte(`{"type":"object","maxProperties":2}`)}},
		{Name: "ask", Approve: &agents.ApproveStep{Message: "Go?", Rule: agents.Approval{Approvers: []string{"ann"}, Expires: time.Hour}}},
		{Name: "judge", Agent: &agents.AgentStep{Name: "b"}, Output: &agents.Output{Schema: []byte(`{"type":"object"}`), Native: new(bool)}},
		{
			Name: "pay", Tool: "pay", Args: map[string]any{"n": 1, "at": "${steps.plan}"}, When: "state.x", Timeout: time.Minute,
			Retry: &agents.Retry{Attempts: 3, Interval: 5 * time.Second}, OnError: agents.OnError{Continue: true}, Compensate: &agents.Step{Tool: "pay"}, Hidden: true,
		},
	}}
	got, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"a","tools":["pay"],"steps":[` +
		`{"name":"plan","agent":{"model":"p/m","instructions":"<x>"},"input":"${input.text} & more","output":{"schema":{"maxProperties":2,"type":"object"}}},` +
		`{"name":"ask","approve":{"message":"Go?","approvers":["ann"],"expires":"1h0m0s"}},` +
		`{"name":"judge","agent":"b","output":{"schema":{"type":"object"},"native":false}},` +
		`{"name":"pay","when":"state.x","tool":"pay","args":{"at":"${steps.plan}","n":1},"visible":false,"retry":{"attempts":3,"interval":"5s"},"timeout":"1m0s","onError":"continue","compensate":{"tool":"pay"}}],` +
		`"limits":{"turns":30,"tokens":400000,"duration":"2h0m0s","parallelTools":8}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("canonical form (-want +got):\n%s", diff)
	}
}

// TestExamplesOfPageParse: every example of the page is valid.
func TestExamplesOfPageParse(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, schemaFile)
	blocks := pageExamples(t)
	for _, block := range blocks {
		if _, err := agents.Parse("pipelines.md", []byte(block)); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		if err := schema.Validate(value(t, block)); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
	}
	if len(blocks) < 10 {
		t.Errorf("number of examples = %d, want at least 10", len(blocks))
	}
}

// TestValidateStep: a step of a program is validated like a step of a file, except for the outputs
// that it refers to.
func TestValidateStep(t *testing.T) {
	t.Parallel()
	d := &agents.Definition{Name: "a", Workflow: "w", Tools: []string{"note"}}
	note := func(name, text string) agents.Step {
		return agents.Step{Name: name, Tool: "note", Args: map[string]any{"note": text}}
	}
	for name, c := range map[string]struct {
		step agents.Step
		want string
	}{
		"outputs of other steps":   {note("a", "${steps.before.x} ${steps.a} ${round}"), "undeclared reference to 'round'"},
		"outputs of others":        {note("a", "${steps.before.x} ${steps.a}"), ""},
		"no name":                  {note("", "x"), "step needs a name"},
		"no name within":           {agents.Step{Name: "a", Steps: []agents.Step{note("", "x")}}, "step.steps[0] needs a name"},
		"nothing to do":            {agents.Step{Name: "a"}, "step must have one of agent, tool"},
		"another tool":             {agents.Step{Name: "a", Tool: "notes"}, `step.tool "notes" is not one of the agent's tools`},
		"no expression":            {agents.Step{Name: "a", When: "1 +", Tool: "note"}, "step.when is not a valid expression"},
		"an agent without a model": {agents.Step{Name: "a", Agent: &agents.AgentStep{Instructions: "x"}}, "step.agent needs a model"},
		"itself":                   {agents.Step{Name: "a", Agent: &agents.AgentStep{Name: "a"}}, `step.agent "a" must not be the agent itself`},
		"a step without an output": {agents.Step{Name: "a", Steps: []agents.Step{note("b", "${steps.a}")}}, "that step has no output of its own"},
		"a place among outputs":    {agents.Step{Name: "a", Set: []agents.Op{{Path: "/perdure.steps/x", Value: 1}}}, "step.set[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch err := d.ValidateStep(c.step); {
			case c.want == "" && err != nil:
				t.Errorf("ValidateStep = %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
