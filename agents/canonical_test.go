package agents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

// TestRevisionsAreStable: the canonical form never changes, because runs hold revisions made of
// it. A change of this test means that every stored agent gets another revision.
func TestRevisionsAreStable(t *testing.T) {
	t.Parallel()
	d := parse(t, complete)
	text, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	wantText := `{"name":"support","description":"Answers customers.","model":"openai/gpt-5-mini",` +
		`"instructions":"You help customers of a bookshop.\n","tools":["get_order","mcp:github/*","client:*"],` +
		`"limits":{"turns":5,"tokens":1000,"duration":"1m30s","parallelTools":2}}`
	if diff := cmp.Diff(wantText, string(text)); diff != "" {
		t.Errorf("canonical form (-want +got):\n%s", diff)
	}
	const wantRevision = "b2eb05eb0b7619babe03881c4a132e6c34f22a41dd39f37f63611f1193630353"
	if got := d.Revision(); got != wantRevision {
		t.Errorf("revision %s, want %s", got, wantRevision)
	}
}

// TestRevisionIgnoresSpellingOfWaits: equal durations of waits are one definition, in a file and in Go.
func TestRevisionIgnoresSpellingOfWaits(t *testing.T) {
	t.Parallel()
	inFile := func(wait, timeout string) *agents.Definition {
		return parse(t, "name: a\nmodel: p/m\nsteps:\n  - {name: w, wait: {for: "+wait+"}}\n  - {name: e, event: {name: paid, timeout: "+timeout+"}}\n")
	}
	frame := *inFile("1h", "1h")
	frame.Steps = nil
	inGo, err := agents.New(frame, agents.WaitFor("w", 14*24*time.Hour), agents.AwaitEvent[any]("e", "paid", nil, 36*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := inGo.Revision()
	for _, same := range [][2]string{{"14d", "36h"}, {"336h", "1d12h"}, {"13d24h", "2160m"}} {
		if got := inFile(same[0], same[1]).Revision(); got != want {
			t.Errorf("revision of %s = %s, want %s", same, got, want)
		}
	}
	other := inFile("14d", "37h")
	if other.Revision() == want {
		t.Error("another timeout has the same revision")
	}
	if spelled := other.Steps[1].Args["timeout"]; spelled != "37h" {
		t.Errorf("the definition has changed: timeout = %v", spelled)
	}
	if templates := inFile("\"${input.text}\"", "37h"); templates.Steps[0].Args["for"] != "${input.text}" {
		t.Errorf("template = %v", templates.Steps[0].Args["for"])
	}
}

func TestRevisionIgnoresSpelling(t *testing.T) {
	t.Parallel()
	base := "name: a\nmodel: p/m\ninstructions: Be brief.\ntools: [b, c]\n"
	revision := parse(t, base).Revision()
	same := map[string]string{
		"order and comments":  "# hello\ntools: [b, c]\ninstructions: Be brief. # really\nmodel: p/m\nname: a\n",
		"style":               "{\"name\": \"a\", model: 'p/m', instructions: \"Be brief.\", tools: [b,\n c]}",
		"defaults spelled":    base + "limits: {parallelTools: 8, duration: 120m, tokens: 400000, turns: 30}\n",
		"some defaults":       base + "limits: {turns: 30}\n",
		"kind spelled":        base + "kind: agent\n",
		"inputs refused":      base + "onNewInput: reject\n",
		"results abandoned":   base + "onMissingToolResult: abandon\n",
		"history aligned":     base + "history: auto\n",
		"an empty limits map": base + "limits: {}\n",
		"an empty state":      base + "state: {}\n",
		"an empty reasoning":  base + "reasoning: {}\n",
		"an invisible state":  base + "state: {visible: false, predict: []}\n",
	}
	for name, text := range same {
		if got := parse(t, text).Revision(); got != revision {
			t.Errorf("%s: revision = %s, want %s", name, got, revision)
		}
	}
	seen := map[string]string{revision: "base"}
	different := map[string]string{
		"name":                                 strings.Replace(base, "name: a", "name: b", 1),
		"model":                                strings.Replace(base, "p/m", "p/n", 1),
		"instructions":                         strings.Replace(base, "brief", "long", 1),
		"order of tools, which the model sees": strings.Replace(base, "[b, c]", "[c, b]", 1),
		"description":                          base + "description: x\n",
		"a visible state":                      base + "state: {visible: true}\n",
		"a prediction":                         base + "state: {predict: [{tool: b, argument: x, key: y}]}\n",
		"an effort":                            base + "reasoning: {effort: low}\n",
		"another effort":                       base + "reasoning: {effort: high}\n",
		"a limit":                              base + "limits: {turns: 31}\n",
		"inputs that wait":                     base + "onNewInput: queue\n",
		"lists that are added":                 base + "history: append\n",
		"inputs that wait for results":         base + "onMissingToolResult: queue\n",
		"inputs refused without results":       base + "onMissingToolResult: reject\n",
	}
	for name, text := range different {
		got := parse(t, text).Revision()
		if other, ok := seen[got]; ok {
			t.Errorf("%s: the same revision as %s", name, other)
		}
		seen[got] = name
	}
}

func TestDefinitionInGoHasDefaults(t *testing.T) {
	t.Parallel()
	d := &agents.Definition{Name: "a", Model: "openrouter/meta/llama-4", Instructions: "<&>\u2028\n", OnMissingToolResult: agents.OpenQueue}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	text, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := agents.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	want := *d
	want.Limits = agents.DefaultLimits()
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	if got.Revision() != d.Revision() {
		t.Errorf("revision of the stored definition = %s, want %s", got.Revision(), d.Revision())
	}
	if d.Limits != (agents.Limits{}) {
		t.Errorf("limits of the caller after Encode = %+v, want none", d.Limits)
	}
	if provider, model := d.ModelProvider(); provider != "openrouter" || model != "meta/llama-4" {
		t.Errorf("ModelProvider = %q, %q, want openrouter and meta/llama-4", provider, model)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*agents.Definition)
		want   string
	}{
		{"name", func(d *agents.Definition) { d.Name = "" }, `agent definition: name "" must be`},
		{"model", func(d *agents.Definition) { d.Model = "p/a b" }, `model "p/a b" must be provider/model`},
		{"text that JSON would change", func(d *agents.Definition) { d.Instructions = "\xff" }, "instructions must be valid UTF-8"},
		{"long description", func(d *agents.Definition) { d.Description = strings.Repeat("x", 5000) }, "description must be at most 4096"},
		{"many tools", func(d *agents.Definition) { d.Tools = make([]string, 257) }, "tools must be at most 256"},
		{"negative limit", func(d *agents.Definition) { d.Limits.Turns = -1 }, "limits.turns must be greater"},
		{"negative duration", func(d *agents.Definition) { d.Limits.Duration = -time.Second }, "limits.duration must be greater"},
		{"parallel tools", func(d *agents.Definition) { d.Limits.ParallelTools = 513 }, "limits.parallelTools must be 1 to 512"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &agents.Definition{Name: "a", Model: "p/m"}
			tt.change(d)
			_, err := agents.Encode(d)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, json, want string }{
		{"garbage", `{"name"`, "unexpected EOF"},
		{"a field of the future", `{"name":"a","model":"p/m","budget":[]}`, `unknown field "budget"`},
		{"a step of the future", `{"name":"a","steps":[{"name":"b","wait":1}]}`, `unknown field "wait"`},
		{"a limit of the future", `{"name":"a","model":"p/m","limits":{"calls":1}}`, `unknown field "calls"`},
		{"more", `{"name":"a","model":"p/m"}{}`, "text after the JSON value"},
		{"invalid", `{"name":"a"}`, "model"},
		{"zero", `{"name":"a","model":"p/m","limits":{"turns":0}}`, "limits.turns must be greater than zero"},
		{"zero duration", `{"name":"a","model":"p/m","limits":{"duration":"0s"}}`, "limits.duration must be greater than zero"},
		{"duration", `{"name":"a","model":"p/m","limits":{"duration":"2w"}}`, "limits.duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.Decode([]byte(tt.json))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
