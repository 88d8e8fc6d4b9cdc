package agents_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/agents"
)

const (
	leastTool   = "kind: tool\nname: a\nhttp: {method: GET, url: x}\n"
	leastServer = "kind: mcp\nname: a\nurl: x\n"
	leastScript = "kind: script\nname: a\nturns: [{steps: [{say: x}]}]\n"
)

const completeFile = `
kind: tool
name: issue_refund
description: Refunds an order.
parameters:
  type: object
  required: [orderId]
  properties:
    orderId: {type: string, const: 2020-01-01, minLength: 1}
    1: {enum: [true, ~, 0x10, 1.5, "1"]}
http:
  method: POST
  url: "https://shop.example/orders/{orderId}"
  headers: {Authorization: "Bearer ${secret:SHOP}"}
  body: form
  timeout: 10s
  allowedHosts: [cdn.example]
  audience: shop-api
idempotent: true
attempts: 2
taskQueue: till.eu-1
---
kind: mcp
name: git-hub
url: https://mcp.example/mcp
headers: {Authorization: token}
timeout: 1m
idempotent: false
attempts: 4
---
kind: mcp
name: local
command: [serve, --fast]
env: {HOME: /tmp}
assertion: false
taskQueue: floor
parallel: false
`

func TestParseFile(t *testing.T) {
	t.Parallel()
	found, err := agents.ParseFile("all.yaml", []byte(completeFile))
	if err != nil {
		t.Fatal(err)
	}
	no := false
	want := &agents.Folder{
		Tools: []*agents.Tool{{
			Name: "issue_refund", Description: "Refunds an order.",
			Parameters: []byte(`{"properties":{"1":{"enum":[true,null,16,1.5,"1"]},"orderId":{"const":"2020-01-01","minLength":1,"type":"string"}},"required":["orderId"],"type":"object"}`),
			HTTP: agents.HTTP{
				Method: "POST", URL: "https://shop.example/orders/{orderId}", Headers: map[string]string{"Authorization": "Bearer ${secret:SHOP}"},
				Body: "form", Timeout: 10 * time.Second, AllowedHosts: []string{"cdn.example"},
				Assertion: true, Audience: "shop-api",
			},
			Idempotent: true, Attempts: 2, TaskQueue: "till.eu-1", Parallel: true,
		}},
		Servers: []*agents.Server{
			{Name: "git-hub", URL: "https://mcp.example/mcp", Headers: map[string]string{"Authorization": "token"}, Timeout: time.Minute, Idempotent: &no, Attempts: 4, Assertion: true, Parallel: true},
			{Name: "local", Command: []string{"serve", "--fast"}, Env: map[string]string{"HOME": "/tmp"}, TaskQueue: "floor"},
		},
	}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreTypes(agents.SourcePosition{}), cmpopts.IgnoreUnexported(agents.Folder{}), cmp.Transformer("", func(b []byte) string { return string(b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsHaveLineOfKey(t *testing.T) {
	t.Parallel()
	found, err := agents.ParseFile("all.yaml", []byte(completeFile))
	if err != nil {
		t.Fatal(err)
	}
	tool := found.Tools[0].Position
	for key, want := range map[string]string{
		"http.url":                   "all.yaml:13: bad",
		"http.headers.Authorization": "all.yaml:14: bad",
		"no.such":                    "all.yaml:2: bad",
	} {
		if got := tool.ErrorAt(key, "bad"); got.Error() != want || got.Key != key {
			t.Errorf("%s: got %v, want %s", key, got, want)
		}
	}
}

func TestSchemasOfKindsAgreeWithParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, yaml string
		want       string // of the error; "" = valid
	}{
		{"least tool", leastTool, ""},
		{"least server", leastServer, ""},
		{"no name", "kind: tool\nhttp: {method: GET, url: x}\n", "a.yaml:1: name is missing"},
		{"bad name", "kind: tool\nname: a b\nhttp: {method: GET, url: x}\n", `a.yaml:2: name must be 1 to 64 letters, digits, _ and -, not "a b"`},
		{"no request", "kind: tool\nname: a\n", "a.yaml:1: http is missing"},
		{"empty request", "kind: tool\nname: a\nhttp: {}\n", "a.yaml:3: http.method is missing\na.yaml:3: http.url is missing"},
		{"request as text", "kind: tool\nname: a\nhttp: x\n", "a.yaml:3: http must have keys, not be text"},
		{"unknown method", "kind: tool\nname: a\nhttp: {method: get, url: x}\n", `a.yaml:3: http.method must be one of GET, HEAD, POST, PUT, PATCH, DELETE, not "get"`},
		{"unknown key", leastTool + "idempotnt: true\n", `a.yaml:4: unknown key "idempotnt" (did you mean "idempotent"?)`},
		{"unknown key of the request", "kind: tool\nname: a\nhttp: {method: GET, url: x, header: {}}\n", `a.yaml:3: unknown key "http.header"`},
		{"unknown body", "kind: tool\nname: a\nhttp: {method: GET, url: x, body: xml}\n", `a.yaml:3: http.body must be one of json, form, not "xml"`},
		{"number as a header", "kind: tool\nname: a\nhttp: {method: GET, url: x, headers: {A: 1}}\n", "a.yaml:3: http.headers.A must be text, not a number"},
		{"host as text", "kind: tool\nname: a\nhttp: {method: GET, url: x, allowedHosts: b}\n", "a.yaml:3: http.allowedHosts must be a list, not text"},
		{"number as a host", "kind: tool\nname: a\nhttp: {method: GET, url: x, allowedHosts: [1]}\n", "a.yaml:3: an entry of http.allowedHosts must be text, not a number"},
		{"timeout without a unit", "kind: tool\nname: a\nhttp: {method: GET, url: x, timeout: 10}\n", "a.yaml:3: http.timeout must be a duration"},
		{"parameters as a list", leastTool + "parameters: []\n", "a.yaml:4: parameters must have keys, not be a list"},
		{"many attempts", leastTool + "idempotent: true\nattempts: 9\n", "a.yaml:5: attempts must be 1 to 8, not 9"},
		{"attempts", leastTool + "idempotent: true\nattempts: 8\n", ""},
		{"one attempt", leastTool + "attempts: 1\n", ""},
		{"attempts of a tool that is not idempotent", leastTool + "attempts: 2\n", "a.yaml:4: attempts must be 1 unless the tool is idempotent"},
		{"task queue", leastTool + "taskQueue: till.eu-1_a\n", ""},
		{"task queue of a server", leastServer + "taskQueue: till\n", ""},
		{"long task queue", leastTool + "taskQueue: " + strings.Repeat("a", 33) + "\n", `a.yaml:4: taskQueue must be 1 to 32 letters, digits, ., _ and -, and begin with a letter or digit, not "` + strings.Repeat("a", 33) + `"`},
		{"hidden task queue", leastServer + "taskQueue: .till\n", `a.yaml:4: taskQueue must be 1 to 32 letters, digits, ., _ and -, and begin with a letter or digit, not ".till"`},
		{"one at a time", leastTool + "parallel: false\n", ""},
		{"perhaps parallel", leastTool + "parallel: 1\n", "a.yaml:4: parallel must be true or false, not a number"},
		{"no attempt", leastTool + "attempts: 0\n", "a.yaml:4: attempts must be greater than zero"},

		{"program", "kind: mcp\nname: a\ncommand: [x]\nenv: {A: b}\n", ""},
		{"bad name of a server", "kind: mcp\nname: a_b\nurl: x\n", "a.yaml:2: name must be 1 to 32 of a-z, 0-9 and -"},
		{"no way to a server", "kind: mcp\nname: a\n", "a.yaml:1: url or command is missing"},
		{"two ways to a server", leastServer + "command: [x]\n", "a.yaml:4: command and url exclude each other"},
		{"no program", "kind: mcp\nname: a\ncommand: []\n", "a.yaml:3: command must have a program"},
		{"program as text", "kind: mcp\nname: a\ncommand: x\n", "a.yaml:3: command must be a list, not text"},
		{"headers for a program", "kind: mcp\nname: a\ncommand: [x]\nheaders: {A: b}\n", "a.yaml:4: headers belong to a url"},
		{"environment for a URL", leastServer + "env: {A: b}\n", "a.yaml:4: env belongs to a command"},
		{"unknown key of a server", leastServer + "tools: []\n", `a.yaml:4: unknown key "tools"`},

		{"least script", leastScript, ""},
		{"script", "kind: script\nname: a\nturns: [{when: \"(?i)a(?P<n>.*)\", steps: [{calls: [{tool: t, arguments: {x: \"{n}\"}}, {tool: u}]}, {say: \"{t.x}\"}]}]\n", ""},
		{"script about an image", "kind: script\nname: a\nturns: [{media: image, steps: [{say: \"{media.0.mimeType}\"}]}]\n", ""},
		{"script about smells", "kind: script\nname: a\nturns: [{media: smell, steps: [{say: x}]}]\n", "a.yaml:3: turns[0].media must be one of image, audio, video, document, not \"smell\""},
		{"no turns", "kind: script\nname: a\n", "a.yaml:1: turns is missing"},
		{"empty turns", "kind: script\nname: a\nturns: []\n", "a.yaml:3: turns must be 1 to 100 entries, not 0"},
		{"turn as text", "kind: script\nname: a\nturns: [x]\n", "a.yaml:3: turns[0] must have keys, not be text"},
		{"turn without steps", "kind: script\nname: a\nturns: [{when: x}]\n", "a.yaml:3: turns[0].steps is missing"},
		{"step of nothing", "kind: script\nname: a\nturns: [{steps: [{think: x}]}]\n", "a.yaml:3: turns[0].steps[0] must have say or calls"},
		{"step of everything", "kind: script\nname: a\npace: 100ms\nturns: [{steps: [{think: y, say: x, calls: [{tool: t}]}]}]\n", ""},
		{"number for a pace", "kind: script\nname: a\npace: 5\nturns: [{steps: [{say: x}]}]\n", "a.yaml:3: pace must be a duration of 0s to 10s, such as 100ms"},
		{"call of nothing", "kind: script\nname: a\nturns: [{steps: [{calls: [{arguments: {}}]}]}]\n", "a.yaml:3: turns[0].steps[0].calls[0].tool is missing"},
		{"arguments as text", "kind: script\nname: a\nturns: [{steps: [{calls: [{tool: t, arguments: x}]}]}]\n", "a.yaml:3: turns[0].steps[0].calls[0].arguments must have keys, not be text"},
		{"unknown key of a step", "kind: script\nname: a\nturns: [{steps: [{say: x, call: y}]}]\n", `a.yaml:3: unknown key "turns[0].steps[0].call"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kind, _, _ := strings.Cut(strings.TrimPrefix(tt.yaml, "kind: "), "\n")
			schema := compileSchema(t, kind+".schema.json")
			if err := schema.Validate(value(t, tt.yaml)); (err == nil) != (tt.want == "") {
				t.Errorf("schema: %v, want valid: %t", err, tt.want == "")
			}
			_, err := agents.ParseFile("a.yaml", []byte(tt.yaml))
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("ParseFile: %v, want %s", err, tt.want)
			}
		})
	}
}

func TestSchemasOfKindsHaveFieldsOfGoTypes(t *testing.T) {
	t.Parallel()
	tool, server, script := readSchema(t, "tool.schema.json"), readSchema(t, "mcp.schema.json"), readSchema(t, "script.schema.json")
	turn := script.Properties["turns"].Items
	step := turn.Properties["steps"].Items
	for name, pair := range map[string]struct {
		of   reflect.Type
		node schemaNode
	}{
		"tool": {reflect.TypeFor[agents.Tool](), tool},
		"http": {reflect.TypeFor[agents.HTTP](), tool.Properties["http"]},
		"mcp":  {reflect.TypeFor[agents.Server](), server},

		"script":      {reflect.TypeFor[agents.Script](), script},
		"script turn": {reflect.TypeFor[agents.ScriptTurn](), *turn},
		"script step": {reflect.TypeFor[agents.ScriptStep](), *step},
		"script call": {reflect.TypeFor[agents.ScriptCall](), *step.Properties["calls"].Items},
	} {
		if diff := cmp.Diff(yamlFields(pair.of), pair.node.names()); diff != "" {
			t.Errorf("keys of %s (-struct +schema):\n%s", name, diff)
		}
	}
}

// TestScriptWithoutExpression: a JSON Schema cannot check RE2 expressions. The parser does.
func TestScriptWithoutExpression(t *testing.T) {
	t.Parallel()
	_, err := agents.ParseFile("a.yaml", []byte("kind: script\nname: a\nturns:\n  - when: (\n    steps: [{say: x}]\n"))
	if want := "a.yaml:4: turns[0].when must be a regular expression: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAliasesDoNotMultiplySize: a file with aliases is bounded like the same file without them,
// before anything is made of its values.
func TestAliasesDoNotMultiplySize(t *testing.T) {
	t.Parallel()
	doubled := leastTool + "parameters:\n  a0: &a0 {x: y}\n"
	for i := range 100 {
		doubled += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	steps := "name: a\nsteps:\n- {name: s0, agent: b, input: &p " + strings.Repeat("x", 200_000) + "}\n"
	for i := range 10 {
		steps += fmt.Sprintf("- {name: s%d, agent: b, input: *p}\n", i+1)
	}
	document := "name: a\nmodel: p/m\ndescription: &d " + strings.Repeat("x", 4_000) + "\nmetadata: [" + strings.Repeat("*d, ", 100) + "]\n---\n"
	for name, tt := range map[string]struct{ text, want string }{
		"doubled":   {doubled, "has more than 100000 keys and values"},
		"texts":     {steps, "is larger than 1048576 bytes when its aliases are replaced"},
		"documents": {strings.Repeat(document, 10), "is larger than 1048576 bytes when its aliases are replaced"},
		"values":    {leastTool + "parameters: {enum: [" + strings.Repeat("1,", 60_000) + "]}\n", "parameters is too large"},
	} {
		_, err := agents.ParseFile("a.yaml", []byte(tt.text))
		var wrong *agents.DefinitionError
		if !errors.As(err, &wrong) || !strings.HasSuffix(wrong.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestParametersAreJSON: the schema of a tool's parameters has no keys and values that JSON lacks.
func TestParametersAreJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  <<: {a: b}\n":         "has a key in line 5 that JSON does not support",
		"  ? [a]\n  : b\n":       "has a key in line 5 that JSON does not support",
		"  a: 1\n  a: 2\n":       `has the key "a" twice, again in line 6`,
		"  a: .nan\n":            "has no JSON form",
		"  a: !!int nonsense\n":  "has an invalid value in line 5",
		"  a: &b\n    c: [*b]\n": "",
	} {
		_, err := agents.ParseFile("a.yaml", []byte(leastTool+"parameters:\n"+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
