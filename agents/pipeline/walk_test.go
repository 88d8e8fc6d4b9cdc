package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWalk(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, steps string
		answers     map[string]string
		did         string // one a line
		told        string
		state       string
		failed      string // the code
	}{
		{
			name: "sequence with outputs",
			steps: `
steps:
  - {name: plan, agent: {instructions: x}, input: "Plan for ${input.text}."}
  - {name: look, tool: search, args: {q: "${steps.plan}", n: 2, all: ["${size(steps.plan)}", "is ${steps.plan}"]}}
  - {name: total, set: {/total: "${steps.look.x + 1}"}}
`,
			answers: map[string]string{"plan": `"abc"`, "look": `{"x":41}`},
			did:     "plan @: Plan for hello.\nlook search{\"all\":[3,\"is abc\"],\"n\":2,\"q\":\"abc\"}",
			told:    "+plan -plan +look -look +total -total",
			state:   `{"steps":{"plan":"abc","look":{"x":41}},"total":42}`,
		},
		{
			name: "loop, route and nested steps",
			steps: `
steps:
  - name: critique
    loop:
      max: 5
      until: steps.review.ok
      steps:
        - {name: draft, agent: writer, input: "Round ${round}"}
        - {name: review, tool: review}
  - name: triage
    route:
      - {when: steps.review.ok == false, steps: [{name: never, tool: no}]}
      - {steps: [{name: inner, steps: [{name: last, tool: b}]}]}
`,
			answers: map[string]string{"critique/1/review": `{"ok":false}`, "critique/2/review": `{"ok":true}`},
			did: "critique/1/draft @writer: Round 1\ncritique/1/review review{}\ncritique/2/draft @writer: Round 2\n" +
				"critique/2/review review{}\ntriage/inner/last b{}",
			told: "+critique +critique/draft -critique/draft +critique/review -critique/review +critique/draft -critique/draft " +
				"+critique/review -critique/review -critique +triage +triage/inner +triage/inner/last -triage/inner/last -triage/inner -triage",
			state: `{"steps":{"draft":"ok","review":{"ok":true},"last":"ok"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.steps)
			w.answer = answers(tt.answers)
			f := w.run()
			code := ""
			if f != nil {
				code = f.Code
			}
			if code != tt.failed {
				t.Errorf("ended with %+v, want %q", f, tt.failed)
			}
			if diff := cmp.Diff(tt.did, strings.Join(w.did, "\n")); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.told, strings.Join(w.told, " ")); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, tt.state), decoded(t, string(w.state))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}
