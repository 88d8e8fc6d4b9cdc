package activities_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

const wordsOfSchema = "Your final answer must be JSON that fits this JSON Schema, and nothing else:\n\n<schema>\n"

// outputRequest is the output format that one model call asks for.
type outputRequest struct {
	System string
	Schema string
	Native string
	Heard  string // the other messages
}

// outputRequestOf returns the parts of a request that depend on the output schema.
func outputRequestOf(req *llm.Request) outputRequest {
	var r outputRequest
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == llm.RoleSystem {
		r.System, messages = messages[0].Text(), messages[1:]
	}
	r.Heard = requestText(&llm.Request{Messages: messages})
	if o := req.Output; o != nil {
		r.Schema, r.Native = string(o.Schema), "unsaid"
		if o.Native != nil {
			r.Native = map[bool]string{true: "true", false: "false"}[*o.Native]
		}
	}
	return r
}

// TestAgentsReceiveTheirOutputSchema: an agent step with an output schema gets the schema in every
// call, in the instructions and as the native format, wherever the agent and the step are defined.
// Other agents get none.
func TestAgentsReceiveTheirOutputSchema(t *testing.T) {
	t.Parallel()
	const number = `{"type":"integer"}`
	words := wordsOfSchema + number + "\n</schema>"
	helper := parseDefinition(t, "name: helper\nmodel: test/m\ninstructions: Help.\ntools: [\"agent:clerk\"]\n")
	clerk := parseDefinition(t, "name: clerk\nmodel: test/m\ninstructions: Write.\n")
	for name, c := range map[string]struct {
		steps string
		model script
		want  []outputRequest
		state string
	}{
		"an inline agent": {
			steps: `  - {name: one, agent: {instructions: "Count."}, input: "a number", output: {schema: {type: integer}}}`,
			want: []outputRequest{
				{"Count.\n\n" + words, number, "unsaid", "user: a number"},
				{"Count.\n\n" + words, number, "unsaid", "user: a number\nassistant: x\nuser: Your last answer is not valid: the answer is not JSON, or has text around the JSON. Answer again, with nothing but JSON that fits the schema."},
			},
			model: func(n int, _ *llm.Request) ([]llm.Chunk, error) { return textAnswer([]string{"x", "7"}[n-1]) },
			state: `{"perdure.steps":{"one":7}}`,
		},
		"without instructions, in the conversation": {
			steps: `  - {name: one, agent: {}, output: {schema: {type: integer}, native: false}}`,
			want:  []outputRequest{{words, number, "false", "user: go"}},
			state: `{"perdure.steps":{"one":7}}`,
		},
		"another agent, in the conversation": {
			steps: `  - {name: one, agent: helper, output: {schema: {type: integer}, native: true}}`,
			want: []outputRequest{
				{"Help.\n\n" + words, number, "true", "user: go"},
				{"Help.\n\n" + words, number, "true", "user: go\nassistant: x\nuser: Your last answer is not valid: the answer is not JSON, or has text around the JSON. Answer again, with nothing but JSON that fits the schema."},
			},
			model: func(n int, _ *llm.Request) ([]llm.Chunk, error) { return textAnswer([]string{"x", "7"}[n-1]) },
			state: `{"perdure.steps":{"one":7}}`,
		},
		"another agent with an input, and a subagent": {
			steps: `  - {name: one, agent: helper, input: "a number", output: {schema: {type: integer}}}`,
			want: []outputRequest{
				{"Help.\n\n" + words, number, "unsaid", "user: a number"},
				{"Write.", "", "", "user: seven"},
				{"Help.\n\n" + words, number, "unsaid", "user: a number\nassistant:  clerk{\"task\":\"seven\"}\ntool: 7"},
			},
			model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
				if n == 1 {
					return callAnswer([3]string{"1", "clerk", `{"task":"seven"}`})
				}
				return textAnswer("7")
			},
			state: `{"perdure.steps":{"one":7}}`,
		},
		"another agent in a branch": {
			steps: `  - name: all
    map: {items: "[1]", steps: [{name: one, agent: helper, input: "a number", output: {schema: {type: integer}}}]}`,
			want:  []outputRequest{{"Help.\n\n" + words, number, "unsaid", "user: a number"}},
			state: `{"perdure.steps":{"all":[{"one":7}]}}`,
		},
		"any text": {
			steps: "  - {name: one, agent: helper}\n  - {name: two, agent: {}, input: x}",
			want:  []outputRequest{{"Help.", "", "", "user: go"}, {"", "", "", "user: x"}},
			state: `{"perdure.steps":{"one":"7","two":"7"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []outputRequest
			fixture, _ := setupPipeline(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				mu.Lock()
				got = append(got, outputRequestOf(req))
				mu.Unlock()
				if c.model == nil {
					return textAnswer("7")
				}
				return c.model(n, req)
			}, c.steps)
			fixture.others = map[string]*agents.Definition{"helper": helper, "clerk": clerk}
			events, result := fixture.run("go")
			mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("output formats (-want +got):\n%s", diff)
			}
			fixture.wantState(c.state)
			fixture.wantShownConversation(events)
			i := slices.IndexFunc(got, func(w outputRequest) bool { return strings.Contains(w.Heard, "<schema>") })
			if i >= 0 {
				t.Errorf("position of the schema = %v, want less than %v", i, 0)
			}
		})
	}
}

// TestAgentsOfProgramsReceiveTheirOutputSchema: agent steps of programs, which are only in the log,
// get their output schema too.
func TestAgentsOfProgramsReceiveTheirOutputSchema(t *testing.T) {
	t.Parallel()
	type count struct {
		N int `json:"n"`
	}
	var got []outputRequest
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		got = append(got, outputRequestOf(req))
		return textAnswer([]string{`{"n":7}`, "?", `{"n":8}`}[n-1])
	})
	program := func(ctx workflow.Context, a *workflows.Agent) error {
		one, err := workflows.Do(ctx, a, agents.Ask[count]("one", agents.AgentStep{Instructions: "Count."}, "a number", agents.Native(true)))
		if err != nil {
			return err
		}
		two, err := workflows.Do(ctx, a, agents.Ask[count]("two", agents.AgentStep{Name: "helper"}, "more"))
		if err == nil && one.N+two.N != 15 {
			t.Errorf("outputs of the program: got %+v and %+v, want the sum 15", one, two)
		}
		return err
	}
	programs := workflows.Programs{"p": program}
	fixture.env.RegisterWorkflowWithOptions(programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
	fixture.agent = &agents.Definition{Name: "a", Model: "test/m", Workflow: "p"}
	fixture.others = map[string]*agents.Definition{"helper": parseDefinition(t, "name: helper\nmodel: test/m\ninstructions: Help.\n")}
	if _, result := fixture.run("go"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("outcome = %q, want %q", result.Outcome, runs.OutcomeSuccess)
	}
	const schema = `{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
	words := wordsOfSchema + schema + "\n</schema>"
	want := []outputRequest{
		{"Count.\n\n" + words, schema, "true", "user: a number"},
		{"Help.\n\n" + words, schema, "unsaid", "user: more"},
		{"Help.\n\n" + words, schema, "unsaid", "user: more\nassistant: ?\nuser: Your last answer is not valid: the answer is not JSON, or has text around the JSON. Answer again, with nothing but JSON that fits the schema."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output formats (-want +got):\n%s", diff)
	}
}
