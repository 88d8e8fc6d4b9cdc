package agents_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents"
)

const complete = `# Support for the bookshop.
kind: agent
name: support
description: Answers customers.
model: openai/gpt-5-mini
instructions: |
  You help customers of a bookshop.
tools: [get_order, "mcp:github/*", "client:*"]
limits: {turns: 5, tokens: 1_000, duration: 90s, parallelTools: 2}
`

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, yaml string
		want       agents.Definition
	}{
		{"everything", complete, agents.Definition{
			Name:         "support",
			Description:  "Answers customers.",
			Model:        "openai/gpt-5-mini",
			Instructions: "You help customers of a bookshop.\n",
			Tools:        []string{"get_order", "mcp:github/*", "client:*"},
			Limits:       agents.Limits{Turns: 5, Tokens: 1000, Duration: 90 * time.Second, ParallelTools: 2},
		}},
		{"the least, with defaults", "name: a\nmodel: p/m\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.Limits{Turns: 30, Tokens: 400_000, Duration: 2 * time.Hour, ParallelTools: 8},
		}},
		{"state", "name: a\nmodel: p/m\nstate: {visible: true, predict: [{tool: f, argument: x, key: y}]}\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.DefaultLimits(),
			State: agents.State{Visible: true, Predict: []agents.Prediction{{Tool: "f", Argument: "x", Key: "y"}}},
		}},
		{"reasoning", "name: a\nmodel: p/m\nreasoning: {effort: minimal}\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.DefaultLimits(), Reasoning: agents.Reasoning{Effort: "minimal"},
		}},
		{"output", "name: a\nmodel: p/m\noutput: {schema: {type: object}, repairs: 0, native: true}\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.DefaultLimits(),
			Output: &agents.Output{Schema: []byte(`{"type":"object"}`), Repairs: new(0), Native: new(true)},
		}},
		{"one limit", "name: a\nmodel: p/m\nlimits:\n  turns: 1\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.Limits{Turns: 1, Tokens: 400_000, Duration: 2 * time.Hour, ParallelTools: 8},
		}},
		{"JSON", `{"name": "a", "model": "p/m", "tools": []}`, agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.DefaultLimits(),
		}},
		{"alias", "name: &n a\nmodel: p/m\ndescription: *n\n", agents.Definition{
			Name: "a", Model: "p/m", Description: "a", Limits: agents.DefaultLimits(),
		}},
		{"document markers", "---\nname: a\nmodel: p/m\n...\n", agents.Definition{
			Name: "a", Model: "p/m", Limits: agents.DefaultLimits(),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := agents.Parse("agents/a.yaml", []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreUnexported(agents.Output{})); diff != "" {
				t.Errorf("definition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, yaml, want string }{
		{"empty", "", "a.yaml:1: is empty: it needs the keys of a definition, such as name and model of an agent"},
		{"only a comment", "# nothing\n", "a.yaml:1: is empty: it needs the keys of a definition, such as name and model of an agent"},
		{"list", "- a\n", "a.yaml:1: expected keys and values, got a list"},
		{"syntax", "name: a\nmodel: [p/m\n", "a.yaml:2: not valid YAML: did not find expected ',' or ']'"},
		{"syntax in the first line", "name: [a\n", "a.yaml:1: not valid YAML: did not find expected ',' or ']'"},
		{"syntax of a mapping", "name: a\nmodel: p/m\n- x\n", "a.yaml:3: not valid YAML: did not find expected key"},
		{"syntax of a list", "name: a\ntools:\n  - a\n b\n", "a.yaml:4: not valid YAML: did not find expected key"},
		{"syntax of a text", "name: a\nmodel: \"p/m\n", "a.yaml:2: not valid YAML: found unexpected end of stream"},
		{"tab", "name: a\n\tmodel: p/m\n", "a.yaml:2: not valid YAML: found a tab character that violates indentation"},
		{"unknown anchor", "name: *x\n", "a.yaml: not valid YAML: unknown anchor 'x' referenced"},
		{"two documents", least + "---\nname: b\n", "a.yaml:4: a second document begins here: the file must have one definition"},
		{"large", "name: " + strings.Repeat("a", 1<<20), "a.yaml: is larger than 1048576 bytes"},
		{"other kind", "kind: tool\n" + least, `a.yaml:1: kind must be agent here, not tool`},

		{"unknown key", least + "temprature: 1\n", `a.yaml:3: unknown key "temprature"`},
		{"mistyped key", least + "\ninstructoins: x\n", `a.yaml:4: unknown key "instructoins" (did you mean "instructions"?)`},
		{"case of a key", least + "Tools: []\n", `a.yaml:3: unknown key "Tools" (did you mean "tools"?)`},
		{"mistyped limit", least + "limits:\n  turn: 3\n", `a.yaml:4: unknown key "limits.turn" (did you mean "turns"?)`},
		{"merge key", least + "<<: {}\n", `a.yaml:3: unknown key "<<"`},
		{"duplicate", least + "name: b\n", `a.yaml:3: key "name" appears twice, first in line 1`},
		{"output without a schema", least + "output: {repairs: 1}\n", "a.yaml:3: output.schema is not a valid JSON Schema: the schema is missing"},
		{"repairs of an output", least + "output:\n  schema: {}\n  repairs: 11\n", "a.yaml:5: output.repairs must be 0 to 10, not 11"},
		{"value without steps", least + "output: {schema: {}, value: state.x}\n", "a.yaml:3: output.value is only for an agent with steps or a workflow: the result of this one is its last answer; remove it"},
		{"value of an unknown step", least + "steps: [{name: x, agent: b}]\noutput: {value: steps.y}\n", "a.yaml:4: output.value refers to steps.y, and there is no such step"},
		{"steps without a last output", least + "steps: [{name: x, set: {/x: 1}}]\noutput: {schema: {}}\n", "a.yaml:4: output.value must be set: the last step has no output of its own"},
		{"repairs of steps", least + "steps: [{name: x, agent: b}]\noutput: {value: steps.x, repairs: 1}\n", "a.yaml:4: output.repairs is only for an agent with a model or a remote: nothing can repair the result of steps or a workflow; set it in the output of a step"},
		{"output of nothing", least + "steps: [{name: x, agent: b}]\noutput: {}\n", "a.yaml:4: output must have a schema or a value: without both it requires nothing; add one, or remove the output"},
		{"program without a value", "name: a\nworkflow: w\noutput: {schema: {}}\n", "a.yaml:3: output.value must be set: the expression of the result of the program"},
		{"value of a step", "name: a\nmodel: p/m\nsteps: [{name: x, agent: b, output: {schema: {}, value: state.x}}]\n", `a.yaml:3: unknown key "steps[0].output.value"`},
		{"duplicate key of the state", least + "state:\n  predict:\n    - {tool: f, argument: x, key: a}\n    - {tool: g, argument: x, key: a}\n",
			`a.yaml:6: state.predict[1].key "a" is already the key of state.predict[0]`},
		{"prediction that lacks its tool", least + "state:\n  predict:\n    - {argument: x, key: a}\n", `a.yaml:1: state.predict[0].tool is missing`},
		{"prediction of outputs", least + "state:\n  predict:\n    - {tool: f, argument: x, key: perdure.steps}\n", `a.yaml:5: state.predict[0].key must not be perdure.steps, which has the outputs of steps`},
		{"result of no tool", least + "state:\n  results:\n    - {tool: f, set: {/x: 1}}\n", `a.yaml:5: state.results[0].tool "f" is not one of the agent's tools`},
		{"result of another client tool", least + "tools: [\"client:g\"]\nstate:\n  results:\n    - {tool: f, set: {/x: 1}}\n", `a.yaml:6: state.results[0].tool "f" is not one of the agent's tools`},
		{"result without set", least + "tools: [f]\nstate:\n  results:\n    - {tool: f}\n", `a.yaml:6: state.results[0] needs a tool and set`},
		{"result twice", least + "tools: [f]\nstate:\n  results:\n    - {tool: f, set: {/x: 1}}\n    - {tool: f, set: {/x: 1}}\n", `a.yaml:7: state.results[1].tool "f" is already the tool of state.results[0]`},
		{"result in a wrong expression", least + "tools: [f]\nstate:\n  results:\n    - tool: f\n      set:\n        /x: \"${results.a}\"\n", `a.yaml:8: state.results[0].set[0] is not a valid template: ${results.a}: 1:1: undeclared reference to 'results'`},
		{"result with input", least + "tools: [f]\nstate:\n  results:\n    - {tool: f, set: {/x: \"${input.text}\"}}\n", `a.yaml:6: state.results[0].set[0] is not a valid template: ${input.text}: 1:1: undeclared reference to 'input'`},
		{"result among outputs", least + "tools: [f]\nstate:\n  results:\n    - {tool: f, set: {/perdure.steps/x: 1}}\n", `a.yaml:6: state.results[0].set[0] path: must not be in /perdure.steps, which has the outputs of steps`},
		{"write to no pointer", least + "state:\n  write:\n    - {path: x}\n", `a.yaml:5: state.write[0].path path: "x" must be a JSON pointer, such as /total`},
		{"write to a computed path", least + "state:\n  write:\n    - {path: \"/${1}\", argument: x}\n", `a.yaml:5: state.write[0].path must not have ${ }: the model may write only declared paths`},
		{"write with one argument twice", least + "state:\n  write:\n    - {path: /x}\n    - {path: /a/x/-}\n", `a.yaml:6: state.write[1] needs another argument: "x" is already that of state.write[0]`},
		{"write without a path", least + "state:\n  write:\n    - {argument: x}\n", `a.yaml:5: state.write[0] needs a path`},
		{"update_state twice", least + "tools: [update_state]\nstate:\n  write:\n    - {path: /x}\n", `a.yaml:6: state.write adds the tool "update_state", which the agent's tools have already`},
		{"flag", least + "state:\n  visible: 1\n", `a.yaml:4: state.visible must be true or false, not a number`},
		{"duplicate limit", least + "limits:\n  turns: 1\n  turns: 2\n", `a.yaml:5: key "limits.turns" appears twice, first in line 4`},

		{"no name", "model: p/m\n", "a.yaml:1: name is missing"},
		{"no model", "# x\n\nname: a\n", "a.yaml:3: model is missing"},
		{"empty value", "name: a\nmodel:\n", "a.yaml:2: model must be a model, or a list of models, not empty"},
		{"bad name", "name: Support Team\nmodel: p/m\n", `a.yaml:1: name "Support Team" must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit`},
		{"number for a name", "name: 2024\nmodel: p/m\n", "a.yaml:1: name must be text, not a number"},
		{"model without provider", "name: a\nmodel: gpt-5-mini\n", `a.yaml:2: model "gpt-5-mini" must be provider/model, such as openai/gpt-5-mini`},
		{"model without name", "name: a\nmodel: openai/\n", `a.yaml:2: model "openai/" must be provider/model, such as openai/gpt-5-mini`},
		{"tagged", "name: !!str {a: b}\nmodel: p/m\n", "a.yaml:1: name must be text, not keys and values"},
		{"long instructions", least + "instructions: " + strings.Repeat("a", 256<<10+1), "a.yaml:3: instructions must be at most 262144 bytes, not 262145"},

		{"questions abandoned", least + "onNewInput: abandon\n", `a.yaml:3: onNewInput must be one of reject, queue, not "abandon"`},
		{"history, unknown", least + "history: complete\n", `a.yaml:3: history must be one of auto, append, replace, not "complete"`},
		{"results forgotten", least + "onMissingToolResult: forget\n", `a.yaml:3: onMissingToolResult must be one of abandon, reject, queue, not "forget"`},

		{"tools as text", least + "tools: calculate\n", "a.yaml:3: tools must be a list, not text"},
		{"tool as number", least + "tools:\n  - calculate\n  - 7\n", "a.yaml:5: an entry of tools must be text, not a number"},
		{"tool with a space", least + "tools:\n  - get order\n", `a.yaml:4: tools: "get order" must be a tool's name, or a pattern with *`},
		{"tool twice", least + "tools:\n  - b\n  - c\n  - b\n", `a.yaml:6: tools: "b" appears twice`},
		{"cyclic alias", least + "tools: &t [*t]\n", "a.yaml:3: an entry of tools must be text, not a list"},

		{"limits as a number", least + "limits: 3\n", "a.yaml:3: limits must have keys, not be a number"},
		{"small context", least + "context: {maxTokens: 10}\n", "a.yaml:3: context.maxTokens must be at least 1000 tokens"},
		{"no room for context", least + "context: {maxTokens: 0}\n", "a.yaml:3: context.maxTokens must be at least 1000 tokens"},
		{"context of less than nothing", least + "context: {maxTokens: -1, policy: summarize}\n", "a.yaml:3: context.maxTokens must be at least 1000 tokens"},
		{"context without a bound", least + "context: {policy: trim}\n", "a.yaml:3: context.maxTokens is missing"},
		{"model for titles without a provider", least + "titleModel: small\n", "a.yaml:3: titleModel \"small\" must be provider/model, such as openai/gpt-5-mini"},
		{"model of no summary", least + "context: {maxTokens: 1000, model: p/s}\n", "a.yaml:3: context.model needs context.policy summarize"},
		{"no cost", least + "limits: {cost: 0.0}\n", "a.yaml:3: limits.cost must be greater than zero"},
		{"cost as text", least + "limits: {cost: \"2\"}\n", "a.yaml:3: limits.cost must be an amount such as 2 or 0.25, not text"},
		{"zero", least + "limits: {turns: 0}\n", "a.yaml:3: limits.turns must be greater than zero"},
		{"negative", least + "limits: {tokens: -1}\n", "a.yaml:3: limits.tokens must be greater than zero"},
		{"fraction", least + "limits: {turns: 1.5}\n", "a.yaml:3: limits.turns must be a whole number, not a decimal number"},
		{"quoted number", least + "limits: {turns: \"3\"}\n", "a.yaml:3: limits.turns must be a whole number, not text"},
		{"large number", least + "limits: {tokens: 18446744073709551615}\n", "a.yaml:3: limits.tokens is out of range"},
		{"parallel", least + "limits: {parallelTools: 513}\n", "a.yaml:3: limits.parallelTools must be 1 to 512, not 513"},
		{"zero duration", least + "limits: {duration: 0s}\n", "a.yaml:3: limits.duration must be greater than zero"},
		{"duration without a unit", least + "limits: {duration: 60}\n", "a.yaml:3: limits.duration must be a duration such as 90s, 15m, 2h or 3d, not a number"},
		{"duration in weeks", least + "limits: {duration: 2w}\n", `a.yaml:3: limits.duration must be a duration such as 90s, 15m, 2h or 3d, not "2w"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.Parse("a.yaml", []byte(tt.yaml))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseReportsAllErrors(t *testing.T) {
	t.Parallel()
	_, err := agents.Parse("a.yaml", []byte("name: A\nmodle: p/m\nlimits:\n  turns: x\n  tokens: 0\n"))
	want := `a.yaml:1: name "A" must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit
a.yaml:1: model is missing
a.yaml:2: unknown key "modle" (did you mean "model"?)
a.yaml:4: limits.turns must be a whole number, not text
a.yaml:5: limits.tokens must be greater than zero`
	if err == nil {
		t.Fatal("Parse of three mistakes: got no error, want one")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	first := (*agents.DefinitionError)(nil)
	if !errors.As(err, &first) {
		t.Fatalf("%T, want *DefinitionError", err)
	}
	place := agents.DefinitionError{File: "a.yaml", Line: 1, Column: 7, Key: "name", Reason: first.Reason}
	if *first != place {
		t.Errorf("got %+v, want %+v", *first, place)
	}

	_, err = agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\n"+strings.Repeat("x: 1\n", 1000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != 20 {
		t.Errorf("%d errors, want 20 of the 1000", n)
	}
}

// TestYAMLRoundTrip: a definition written as YAML is parsed to the same definition.
func TestYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	want := parse(t, complete)
	text, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, parse(t, string(text))); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
}

// parse returns the definition of a valid file.
func parse(t *testing.T, text string) *agents.Definition {
	t.Helper()
	d, err := agents.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		complete, withSoft, "name: a\nmodel: p/m\n", "name: &n a\nmodel: *n\n", "tools: &t [*t]\n", `{"name":"a","model":"p/m"}`,
		"limits: {turns: 0x10, duration: 1h}\n", "? [a]\n: b\n", "<<: {a: b}\n", "--- !!str\n", "name: \"\\0\"\n", "a: |\n  b\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := agents.Parse("a.yaml", data)
		if err != nil {
			if wrong := (*agents.DefinitionError)(nil); !errors.As(err, &wrong) {
				t.Errorf("%T, want *DefinitionError", err)
			}
			return
		}
		text, err := agents.Encode(d)
		if err != nil {
			t.Fatalf("%q was accepted, but is not valid: %v", data, err)
		}
		again, err := agents.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again.Revision() != d.Revision() {
			t.Errorf("%q: revision of the stored definition = %s, want %s", data, again.Revision(), d.Revision())
		}
	})
}
