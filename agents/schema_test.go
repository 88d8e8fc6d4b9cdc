package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents"
)

const schemaFile = "agent.schema.json"

// compileSchema compiles a JSON schema of the project.
func compileSchema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// least is the beginning of every definition in schemaCases.
const least = "name: a\nmodel: p/m\n"

// schemaCases are definitions, with whether they are valid.
var schemaCases = []struct {
	name, yaml string
	wantValid  bool
}{
	{"least", least, true},
	{"everything", complete, true},
	{"several models", "name: a\nmodel: [p/m, q/n]\nfallback: {on: [timeout, context_length]}\n", true},
	{"nine models", "name: a\nmodel: [p/1, p/2, p/3, p/4, p/5, p/6, p/7, p/8, p/9]\n", false},
	{"no models", "name: a\nmodel: []\n", false},
	{"a model twice", "name: a\nmodel: [p/m, p/m]\n", false},
	{"fallback on an unknown error", "name: a\nmodel: [p/m, q/n]\nfallback: {on: [broken]}\n", false},
	{"remote", "name: a\nremote: {url: https://h/a, headers: {X: y}, protocol: 0.x, retry: resume, forward: {state: false, tools: none, props: [locale]}}\n", true},
	{"interrupts of a remote agent", "name: a\nremote: {url: https://h/a, interrupts: {approvers: [ann, 'role:x'], quorum: 2, notByRequester: true, remind: 1h, expires: 2h, onExpiry: fail, escalate: [{after: 1h, to: [bob]}]}}\n", true},
	{"skipped interrupt of a remote agent", "name: a\nremote: {url: https://h/a, interrupts: {expires: 2h, onExpiry: skip}}\n", false},
	{"remote without a URL", "name: a\nremote: {}\n", false},
	{"no tools", least + "tools: []\n", true},
	{"compound duration", least + "limits: {duration: 1h30m}\n", true},
	{"fraction of an hour", least + "limits: {duration: 1.5h}\n", true},
	{"state", least + "state: {visible: true, predict: [{tool: write, argument: text, key: a b/c}]}\n", true},
	{"approvers", least + "tools: [a]\napprovals: [{tools: [a], approvers: [ann, 'role:x'], quorum: 2, notByRequester: true, remind: 1h, expires: 2h, onExpiry: escalate, escalate: [{after: 1h, to: [bob]}]}]\n", true},
	{"approver twice", least + "tools: [a]\napprovals: [{tools: [a], approvers: [ann, ann]}]\n", false},
	{"role without a name", least + "tools: [a]\napprovals: [{tools: [a], approvers: ['role:']}]\n", false},
	{"large quorum", least + "tools: [a]\napprovals: [{tools: [a], quorum: 9}]\n", false},
	{"escalation without approvers", least + "tools: [a]\napprovals: [{tools: [a], approvers: [ann], escalate: [{after: 1h, to: []}]}]\n", false},
	{"escalation after no time", least + "tools: [a]\napprovals: [{tools: [a], approvers: [ann], escalate: [{to: [bob]}]}]\n", false},
	{"empty state", least + "state: {}\n", true},
	{"unknown use of the state", least + "state: {hidden: true}\n", false},
	{"text for a flag", least + "state: {visible: \"true\"}\n", false},
	{"visible without a value", least + "state: {visible: }\n", false},
	{"state as a flag", least + "state: true\n", false},
	{"prediction without a key", least + "state: {predict: [{tool: write, argument: text}]}\n", false},
	{"prediction for a pattern", least + "state: {predict: [{tool: \"write_*\", argument: text, key: a}]}\n", false},
	{"prediction of nothing", least + "state: {predict: [{tool: write, argument: \"\", key: a}]}\n", false},
	{"prediction as text", least + "state: {predict: [write]}\n", false},
	{"predictions without a list", least + "state: {predict: {tool: write, argument: text, key: a}}\n", false},
	{"unknown key of a prediction", least + "state: {predict: [{tool: write, argument: text, key: a, at: b}]}\n", false},
	{"result", least + "tools: [f]\nstate: {results: [{tool: f, set: {\"/x/${args.id + '/'}/-\": \"${result}\", /y: null}}]}\n", true},
	{"results without an entry", least + "state: {results: []}\n", false},
	{"write", least + "state: {write: [{path: /a, schema: {type: string}}, {path: /b/-, argument: c}]}\n", true},
	{"write without a path", least + "state: {write: [{argument: c}]}\n", false},
	{"write of nothing", least + "state: {write: []}\n", false},
	{"effort", least + "reasoning: {effort: high}\n", true},
	{"empty reasoning", least + "reasoning: {}\n", true},
	{"no such effort", least + "reasoning: {effort: utmost}\n", false},
	{"empty effort", least + "reasoning: {effort: \"\"}\n", false},
	{"effort without a value", least + "reasoning: {effort: }\n", false},
	{"number for an effort", least + "reasoning: {effort: 3}\n", false},
	{"effort alone", least + "reasoning: high\n", false},
	{"unknown key of reasoning", least + "reasoning: {budget: 1000}\n", false},
	{"context", least + "context: {maxTokens: 100000, keep: {first: 2, last: 20}, policy: summarize, model: p/small}\n", true},
	{"small context", least + "context: {maxTokens: 999}\n", false},
	{"context without a bound", least + "context: {policy: trim}\n", false},
	{"empty context", least + "context: {}\n", false},
	{"nothing kept", least + "context: {maxTokens: 1000, keep: {last: 0}}\n", false},
	{"too much kept", least + "context: {maxTokens: 1000, keep: {last: 1001}}\n", false},
	{"unknown policy", least + "context: {maxTokens: 1000, policy: forget}\n", false},
	{"summary's model without a summary", least + "context: {maxTokens: 1000, model: p/small}\n", false},
	{"summary's model without a provider", least + "context: {maxTokens: 1000, policy: summarize, model: small}\n", false},
	{"model for titles", least + "titleModel: p/small\n", true},
	{"model for titles without a provider", least + "titleModel: small\n", false},
	{"object for the model of titles", least + "titleModel: {model: p/small}\n", false},
	{"new inputs and results", least + "onNewInput: queue\nonMissingToolResult: reject\n", true},
	{"history", least + "history: append\n", true},
	{"history, unknown", least + "history: complete\n", false},
	{"defaults of both", least + "onNewInput: reject\nonMissingToolResult: abandon\n", true},
	{"questions abandoned", least + "onNewInput: abandon\n", false},
	{"results forgotten", least + "onMissingToolResult: forget\n", false},
	{"empty word", least + "onMissingToolResult: \"\"\n", false},
	{"unknown key", least + "temperature: 1\n", false},
	{"unknown limit", least + "limits: {calls: 1}\n", false},
	{"cost", least + "limits: {cost: 0.25}\n", true},
	{"no cost", least + "limits: {cost: 0}\n", false},
	{"cost as text", least + "limits: {cost: \"1\"}\n", false},
	{"huge cost", least + "limits: {cost: 1000000000}\n", false},
	{"kind", "kind: tool\n" + least, false},
	{"no name", "model: p/m\n", false},
	{"no model", "name: a\n", false},
	{"steps without a model", "name: a\nsteps: [{name: x, agent: b}]\n", true},
	{"steps and a model", least + "steps: [{name: x, agent: {}}]\n", true},
	{"no steps", least + "steps: []\n", false},
	{"step without a name", least + "steps: [{agent: b}]\n", false},
	{"step called model", least + "steps: [{name: model, agent: b}]\n", false},
	{"step with two kinds", least + "steps: [{name: x, agent: b, tool: t}]\ntools: [t]\n", false},
	{"unknown key of a step", least + "steps: [{name: x, agent: b, pause: 1s}]\n", false},
	{"wait for a duration", "name: a\nsteps: [{name: x, wait: {for: 1d12h}}]\n", true},
	{"wait for a template", "name: a\nsteps: [{name: x, wait: {for: \"${input.text}h\"}}]\n", true},
	{"wait until a time", "name: a\nsteps: [{name: x, wait: {until: \"2026-05-04 09:00\", timezone: Europe/Berlin}}]\n", true},
	{"wait by its tool", "name: a\nsteps: [{name: x, tool: wait, args: {for: 3d}}]\n", true},
	{"wait for nothing", "name: a\nsteps: [{name: x, wait: {}}]\n", false},
	{"wait without a unit", "name: a\nsteps: [{name: x, wait: {for: \"90\"}}]\n", false},
	{"wait as text", "name: a\nsteps: [{name: x, wait: 90s}]\n", false},
	{"wait for both", "name: a\nsteps: [{name: x, wait: {for: 1h, until: \"2026-05-04\"}}]\n", false},
	{"unknown key of a wait", "name: a\nsteps: [{name: x, wait: {for: 1h, zone: UTC}}]\n", false},
	{"wait of an agent", "name: a\nsteps: [{name: x, agent: b, wait: {for: 1h}}]\n", false},
	{"event", "name: a\nsteps: [{name: x, event: {name: paid, match: {order.id: \"${input.text}\", n: 1, ok: null}, timeout: 7d}}]\n", true},
	{"event and wait", "name: a\nsteps: [{name: x, event: {name: paid}, wait: {for: 1h}}]\n", false},
	{"event without a name", "name: a\nsteps: [{name: x, event: {timeout: 1h}}]\n", false},
	{"event with a list to match", "name: a\nsteps: [{name: x, event: {name: paid, match: [a]}}]\n", false},
	{"event with a bad timeout", "name: a\nsteps: [{name: x, event: {name: paid, timeout: soon}}]\n", false},
	{"maximum of waits", least + "limits: {wait: 366d}\n", true},
	{"input of a tool", least + "tools: [t]\nsteps: [{name: x, tool: t, input: y}]\n", false},
	{"when as a boolean", least + "steps: [{name: x, agent: b, when: false}]\n", true},
	{"when as a number", least + "steps: [{name: x, agent: b, when: 1}]\n", false},
	{"empty when", least + "steps: [{name: x, agent: b, when: \"\"}]\n", false},
	{"output of an agent", least + "output: {schema: {type: object}, repairs: 0, native: false}\n", true},
	{"output of steps", least + "steps: [{name: x, agent: b}]\noutput: {value: steps.x}\n", true},
	{"empty output", least + "output: {}\n", false},
	{"output", least + "steps: [{name: x, agent: b, output: {schema: {type: object}, repairs: 0}}]\n", true},
	{"output without a schema", least + "steps: [{name: x, agent: b, output: {repairs: 0}}]\n", false},
	{"native output", least + "steps: [{name: x, agent: b, output: {schema: {type: object}, native: true}}]\n", true},
	{"native output in words", least + "steps: [{name: x, agent: b, output: {schema: {type: object}, native: maybe}}]\n", false},
	{"invalid schema", least + "steps: [{name: x, agent: b, output: {schema: {type: 7}}}]\n", false},
	{"many repairs", least + "steps: [{name: x, agent: b, output: {schema: {}, repairs: 11}}]\n", false},
	{"question", least + "steps: [{name: x, approve: {message: y, args: {a: 1}, approvers: [ann], quorum: 1, expires: 1h, onExpiry: fail}}]\n", true},
	{"question without a message", least + "steps: [{name: x, approve: {}}]\n", false},
	{"question with tools", least + "steps: [{name: x, approve: {message: y, tools: [t]}}]\n", false},
	{"parallel", least + "steps: [{name: x, parallel: [{name: y, agent: b}]}]\n", true},
	{"parallel with another key", least + "steps: [{name: x, parallel: {concurrency: 2, onError: continue, steps: [{name: y, agent: b}]}}]\n", true},
	{"wide parallel", least + "steps: [{name: x, parallel: {concurrency: 65, steps: [{name: y, agent: b}]}}]\n", false},
	{"parallel of nothing", least + "steps: [{name: x, parallel: {concurrency: 2}}]\n", false},
	{"map", least + "steps: [{name: x, map: {items: state.a, as: it, concurrency: 100, onError: fail, steps: [{name: y, agent: b}]}}]\n", true},
	{"map without items", least + "steps: [{name: x, map: {steps: [{name: y, agent: b}]}}]\n", false},
	{"map without steps", least + "steps: [{name: x, map: {items: state.a}}]\n", false},
	{"map as something", least + "steps: [{name: x, map: {items: state.a, as: It, steps: [{name: y, agent: b}]}}]\n", false},
	{"input policy", least + "input: {instructions: accept, toolResults: refuse, edits: refuse, state: accept}\n", true},
	{"unknown value of the input policy", least + "input: {instructions: maybe}\n", false},
	{"unknown member of the input policy", least + "input: {system: accept}\n", false},
	{"route", least + "steps: [{name: x, route: [{when: state.a, steps: [{name: y, agent: b}]}, {steps: [{name: z, agent: b}]}]}]\n", true},
	{"route to nowhere", least + "steps: [{name: x, route: [{when: state.a}]}]\n", false},
	{"loop", least + "steps: [{name: x, loop: {max: 2, until: steps.y, steps: [{name: y, agent: b}]}}]\n", true},
	{"loop without max", least + "steps: [{name: x, loop: {steps: [{name: y, agent: b}]}}]\n", false},
	{"set", least + "steps: [{name: x, set: {/a: 1, /b/-: null}}]\n", true},
	{"set by operations", least + "steps: [{name: x, set: [{op: move, from: /a, path: /b}, {path: /c, value: [1]}]}]\n", true},
	{"set nothing", least + "steps: [{name: x, set: {}}]\n", false},
	{"set without a slash", least + "steps: [{name: x, set: {a: 1}}]\n", false},
	{"set by an unknown operation", least + "steps: [{name: x, set: [{op: put, path: /a}]}]\n", false},
	{"hidden step", least + "steps: [{name: x, agent: b, visible: false}]\n", true},
	{"hidden approval", least + "steps: [{name: x, approve: {message: go}, visible: false}]\n", false},
	{"retry", least + "steps: [{name: x, agent: b, retry: {attempts: 3, interval: 1m, backoff: 1.5}, timeout: 1h}]\n", true},
	{"retry for ever", least + "steps: [{name: x, agent: b, retry: {attempts: 101}}]\n", false},
	{"retry faster and faster", least + "steps: [{name: x, agent: b, retry: {attempts: 3, backoff: 0.5}}]\n", false},
	{"onError", least + "steps: [{name: x, agent: b, onError: {steps: [{name: y, agent: b}]}}]\n", true},
	{"onError with a word", least + "steps: [{name: x, agent: b, onError: continue}]\n", true},
	{"onError with another word", least + "steps: [{name: x, agent: b, onError: ignore}]\n", false},
	{"compensate", least + "steps: [{name: x, agent: b, compensate: {steps: [{name: y, agent: b}], when: true}}]\n", true},
	{"compensate with a name", least + "steps: [{name: x, agent: b, compensate: {name: y, agent: b}}]\n", false},
	{"compensate by branches", least + "steps: [{name: x, agent: b, compensate: {parallel: [{name: y, agent: b}]}}]\n", false},
	{"compensate nothing", least + "steps: [{name: x, agent: b, compensate: {}}]\n", false},
	{"bad name", "name: A\nmodel: p/m\n", false},
	{"long name", "name: " + strings.Repeat("a", 65) + "\nmodel: p/m\n", false},
	{"bad model", "name: a\nmodel: gpt\n", false},
	{"number for text", "name: a\nmodel: p/m\ndescription: 1\n", false},
	{"nothing for text", "name: a\nmodel: p/m\ndescription:\n", false},
	{"tools as text", least + "tools: a\n", false},
	{"bad tool", least + "tools: [a b]\n", false},
	{"tool twice", least + "tools: [a, a]\n", false},
	{"zero", least + "limits: {turns: 0}\n", false},
	{"fraction", least + "limits: {turns: 1.5}\n", false},
	{"too parallel", least + "limits: {parallelTools: 513}\n", false},
	{"number for a duration", least + "limits: {duration: 60}\n", false},
	{"negative duration", least + "limits: {duration: -1h}\n", false},
	{"duration in weeks", least + "limits: {duration: 2w}\n", false},
}

// TestSchemaAgreesWithParse: editors and the parser must agree about valid definitions.
func TestSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, schemaFile)
	for _, tt := range schemaCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := schema.Validate(value(t, tt.yaml)); (err == nil) != tt.wantValid {
				t.Errorf("schema: %v, want valid: %t", err, tt.wantValid)
			}
			if _, err := agents.Parse("a.yaml", []byte(tt.yaml)); (err == nil) != tt.wantValid {
				t.Errorf("Parse: %v, want valid: %t", err, tt.wantValid)
			}
		})
	}
}

func TestShippedAgentsFitSchema(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, schemaFile)
	for _, file := range []string{"assistant.yaml", "demo.yaml", "think.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value(t, string(text))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestSchemaHasFieldsOfDefinition(t *testing.T) {
	t.Parallel()
	root := readSchema(t, schemaFile)
	if diff := cmp.Diff(fields(reflect.TypeFor[agents.Definition]()), root.names()); diff != "" {
		t.Errorf("keys of a definition (-struct +schema):\n%s", diff)
	}
	if diff := cmp.Diff(fields(reflect.TypeFor[agents.State]()), root.Properties["state"].names()); diff != "" {
		t.Errorf("keys of state (-struct +schema):\n%s", diff)
	}
	if diff := cmp.Diff(fields(reflect.TypeFor[agents.Reasoning]()), root.Properties["reasoning"].names()); diff != "" {
		t.Errorf("keys of reasoning (-struct +schema):\n%s", diff)
	}
	on := root.Properties["fallback"].Properties["on"]
	if diff := cmp.Diff(agents.FallbackCodes(), on.Items.Enum); diff != "" {
		t.Errorf("codes of fallback.on (-code +schema):\n%s", diff)
	}
	if diff := cmp.Diff(fmt.Sprint(agents.DefaultFallbackCodes()), fmt.Sprint(on.Default)); diff != "" {
		t.Errorf("default of fallback.on (-code +schema):\n%s", diff)
	}
	limits := root.Properties["limits"]
	if diff := cmp.Diff(fields(reflect.TypeFor[agents.Limits]()), limits.names()); diff != "" {
		t.Errorf("keys of limits (-struct +schema):\n%s", diff)
	}

	d := agents.DefaultLimits()
	got, err := time.ParseDuration(limits.Properties["duration"].Default.(string))
	if err != nil || got != d.Duration {
		t.Errorf("default duration %v, %v, want %v", got, err, d.Duration)
	}
	for name, want := range map[string]float64{
		"turns": float64(d.Turns), "tokens": float64(d.Tokens), "parallelTools": float64(d.ParallelTools),
	} {
		if got := limits.Properties[name].Default; got != want {
			t.Errorf("default of %s is %v, want %v", name, got, want)
		}
	}
}

type schemaNode struct {
	Properties map[string]schemaNode
	Items      *schemaNode
	Enum       []string
	Default    any
}

// readSchema reads a JSON schema of the project.
func readSchema(t *testing.T, file string) schemaNode {
	t.Helper()
	var root schemaNode
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// names returns the keys without kind, which selects the type.
func (n schemaNode) names() []string {
	var all []string
	for name := range n.Properties {
		if name != "kind" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// fields returns the keys of a struct, which must be the same in YAML and JSON.
func fields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		inYAML, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		inJSON, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if inYAML != inJSON {
			inYAML += " or " + inJSON
		}
		names = append(names, inYAML)
	}
	slices.Sort(names)
	return names
}

// yamlFields returns the keys of a struct that is only read from files.
func yamlFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// value decodes YAML as JSON values.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
