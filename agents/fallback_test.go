package agents_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

// TestModelChainKeepsItsForm: a list of models has one canonical form, and a list of one model is
// that of the model alone.
func TestModelChainKeepsItsForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"model: [p/m]\n":                                 `{"name":"a","model":"p/m",`,
		"model: [p/m, q/n]\n":                            `{"name":"a","model":["p/m","q/n"],`,
		"description: x\nmodel: [p/m, 'q/<n>']\n":        `{"name":"a","description":"x","model":["p/m","q/<n>"],`,
		"model: [p/m, q/n]\nfallback: {}\n":              `{"name":"a","model":["p/m","q/n"],"limits"`,
		"model: [p/m, q/n]\nfallback: {on: [timeout]}\n": `{"name":"a","model":["p/m","q/n"],"fallback":{"on":["timeout"]},`,
		"model: [p/m, q/n]\nfallback: {on: [" + strings.Join(agents.DefaultFallbackCodes(), ", ") + "]}\n":                        `{"name":"a","model":["p/m","q/n"],"limits"`,
		"steps: [{name: s, agent: {model: [p/m, q/n], fallback: {on: [conflict]}}}]\n":                                            `{"name":"a","steps":[{"name":"s","agent":{"model":["p/m","q/n"],"fallback":{"on":["conflict"]}}}],`,
		"model: p/m\nfallback: {on: [timeout, conflict]}\nsteps: [{name: s, agent: {model: [q/n, p/m]}}, {name: t, agent: {}}]\n": `{"name":"a","model":"p/m","fallback":{"on":["conflict","timeout"]},"steps":[`,
	} {
		d := parse(t, "name: a\n"+text)
		encoded, err := agents.Encode(d)
		if err != nil || !strings.HasPrefix(string(encoded), want) {
			t.Errorf("%q = %s, %v, want %s…", text, encoded, err, want)
			continue
		}
		decoded, err := agents.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		again, err := agents.Encode(decoded)
		if diff := cmp.Diff(string(encoded), string(again)); diff != "" || err != nil {
			t.Errorf("%q, decoded and encoded, %v (-want +got):\n%s", text, err, diff)
		}
		file, err := d.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, string(file)).Revision(); got != d.Revision() {
			t.Errorf("%q as a file has the revision %s, want %s:\n%s", text, got, d.Revision(), file)
		}
	}
}

// TestInlineAgentHasItsModels: an inline agent with models has these only, and another one has those
// of the pipeline.
func TestInlineAgentHasItsModels(t *testing.T) {
	t.Parallel()
	d := parse(t, "name: a\nmodel: [p/m, q/n]\nfallback: {on: [timeout]}\nsteps: [{name: own, agent: {model: r/o}}, {name: others, agent: {}}]\n")
	for i, want := range [][]string{{"r/o"}, {"p/m", "q/n"}} {
		inline := d.Inline("s", d.Steps[i].Agent)
		if diff := cmp.Diff(want, inline.Models()); diff != "" {
			t.Errorf("models of step %d (-want +got):\n%s", i, diff)
		}
		if !inline.Fallback.FallsBackOn("timeout") || inline.Fallback.FallsBackOn("unavailable") {
			t.Errorf("step %d falls back on %v, want timeout only", i, inline.Fallback.On)
		}
	}
	var used []string
	for _, u := range d.Uses() {
		used = append(used, u.Key+" "+u.Name)
	}
	want := []string{"model[0] p/m", "model[1] q/n", "steps r/o", "steps p/m", "steps q/n"}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// TestModelMistakes: each mistake in a list of models is reported at its entry.
func TestModelMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"model: []\n": "a.yaml:2: model must be 1 to 8 models, not 0",
		"model: [p/1, p/2, p/3, p/4, p/5, p/6, p/7, p/8, p/9]\n": "a.yaml:2: model must be 1 to 8 models, not 9",
		"model:\n- p/m\n- q\n":                               `a.yaml:4: model "q" must be provider/model, such as openai/gpt-5-mini`,
		"model:\n- p/m\n- q/n\n- p/m\n":                      `a.yaml:5: model "p/m" appears twice`,
		"model: p/m\nfallback: {on: [timeout]}\n":            "a.yaml:3: fallback needs a list of models, as in model: [openai/gpt-5-mini, gemini/gemini-3-flash]",
		"model: [p/m, q/n]\nfallback:\n  on:\n  - timout\n":  `a.yaml:5: fallback.on: "timout" must be one of ` + strings.Join(agents.FallbackCodes(), ", "),
		"steps:\n- name: s\n  agent:\n    model: [p/m, q]\n": `a.yaml:5: steps[0].agent.model "q" must be provider/model, such as openai/gpt-5-mini`,
		"model: {first: p/m}\n":                              "a.yaml:2: model must be a model, or a list of models, not keys and values",
	} {
		_, err := agents.Parse("a.yaml", []byte("name: a\n"+text))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
