package agents_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/agents"
)

type verdict struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

type reason struct {
	OK  bool   `json:"ok"`
	Why string `json:"why"`
}

type facts struct {
	Facts []string `json:"facts"`
}

type charge struct {
	ID string `json:"id"`
}

// inline returns an inline agent.
func inline(instructions string) agents.AgentStep {
	return agents.AgentStep{Instructions: instructions}
}

// pages returns the steps of an example in the documentation.
func pages() agents.Steps {
	url := agents.Each("url", agents.Expr[[]string]("state.urls"))
	page := agents.Call[string]("page", "fetch", agents.Args{"url": url})
	summary := agents.Ask[string]("summary", inline("You summarize."), page.String())
	pages := agents.Map("pages", url, agents.Steps{page, summary}, agents.Branches{Concurrency: 20, OnError: agents.OnErrorContinue})
	return agents.Steps{pages, agents.Ask[string]("report", inline("You write reports."), agents.Collect(pages, summary).String())}
}

// both returns the steps of an example in the documentation.
func both() agents.Steps {
	web := agents.Call[string]("web", "search_web", agents.Args{"q": "${input.text}"})
	query := agents.Ask[string]("query", inline("You write SQL."), "")
	rows := agents.Call[string]("rows", "run_sql", agents.Args{"sql": query})
	return agents.Steps{
		agents.Parallel("both", agents.Steps{web, agents.Sequence("db", agents.Steps{query, rows})}),
		agents.Set("merged", []agents.Op{{Path: "/result", Value: agents.Args{"web": web, "rows": rows}}}),
	}
}

// kind returns the steps of an example in the documentation.
func kind() agents.Steps {
	kind := agents.Ask[string]("kind", inline("Say refund, or other."), "")
	return agents.Steps{kind, agents.Route("triage", []agents.Case{
		agents.When(agents.Equal(kind, "refund")).Then(agents.Call[string]("refund", "refund_order", nil)),
		agents.Default(agents.Ask[string]("talk", inline("You help."), "")),
	})}
}

// critique returns the steps of an example in the documentation.
func critique() agents.Steps {
	draft := agents.Ask[string]("draft", inline("You write."), "${round == 1 ? input.text : 'Better: ' + steps.review.why}")
	review := agents.Ask[reason]("review", inline("You judge."), draft.String(), agents.Schema([]byte(`{"type": "object", "required": ["ok", "why"]}`)))
	good := agents.Field(review, &review.Out.OK)
	return agents.Steps{
		agents.Loop("critique", 3, agents.Steps{draft, review}, agents.Until(good)),
		agents.Set("enough", []agents.Op{{Path: "/good", Value: good}}),
	}
}

// totals returns the steps of an example in the documentation.
func totals() agents.Steps {
	type words struct {
		Words int `json:"words"`
	}
	count := agents.Call[words]("count", "count_words", agents.Args{"text": "${input.text}"})
	return agents.Steps{count, agents.Set("totals", []agents.Op{
		{Path: "/total", Value: agents.Expr[int](agents.Field(count, &count.Out.Words).Expr() + " + 1")},
		{Path: "/list/-", Value: "${input.text}"},
		{Path: "/draft", Value: nil},
	})}
}

// charged returns the steps of an example in the documentation.
func charged() agents.Steps {
	charged := agents.Call[charge](
		"charge", "charge_card", agents.Args{"amount": "${state.amount}"},
		agents.When(agents.Expr[bool]("state.amount > 0")),
		agents.Timeout(10*time.Minute),
		agents.Retry{Attempts: 3, Interval: 5 * time.Second, Backoff: 2},
		agents.OnErrorRun(agents.Call[string]("told", "notify", agents.Args{"text": "It failed: ${error.code}"})),
	)
	return agents.Steps{
		charged.With(agents.Compensate(agents.Call[string]("", "refund", agents.Args{"charge": agents.Field(charged, &charged.Out.ID)}))),
		agents.Call[string]("extra", "enrich", nil, agents.ContinueOnError()),
		agents.Set("note", []agents.Op{{Path: "/enriched", Value: "${!has(steps.extra.error)}"}}),
	}
}

func classified() agents.Steps {
	kind := agents.Ask[string]("classify", inline("Say refund, or other."), "", agents.Hidden())
	return agents.Steps{kind, agents.Ask[string]("answer", inline("You help."), "${input.text} ("+kind.String()+")")}
}

// inGo returns the page's examples after the first one, in order, as Go values.
func inGo() []agents.Steps {
	return []agents.Steps{
		{
			agents.Ask[string]("plan", agents.AgentStep{Instructions: "You plan research.", Tools: []string{"search"}}, "Make a plan for: ${input.text}"),
			agents.Ask[string]("polish", agents.AgentStep{Name: "writer"}, ""),
		},
		{agents.Ask[verdict]("verdict", inline("You judge essays."), "Judge: ${input.text}", agents.Repairs(3))},
		{agents.Ask[facts](
			"facts", agents.AgentStep{Instructions: "You extract facts.", Model: "openai/qwen3-32b"}, "", agents.Native(true),
		)},
		{agents.Call[string]("weather", "get_weather", agents.Args{"city": "${input.text}", "days": 3})},
		{
			agents.WaitUntil("morning", "2026-05-04 09:00", "Europe/Berlin"),
			agents.AwaitEvent[any]("paid", "payment.received", agents.Args{"orderId": "${input.text}"}, 0),
		},
		{agents.Approve(
			"sign_off", "Refund ${state.amount}?", agents.Args{"amount": agents.Expr[float64]("state.amount")},
			agents.Approval{Approvers: []string{"role:finance"}, Expires: 24 * time.Hour, OnExpiry: agents.OnExpiryReject},
		)},
		both(),
		{agents.Parallel("sources", agents.Steps{
			agents.Call[string]("a", "search_a", nil), agents.Call[string]("b", "search_b", nil), agents.Call[string]("c", "search_c", nil),
		}, agents.Branches{Concurrency: 2, OnError: agents.OnErrorContinue})},
		pages(), kind(), critique(), totals(),
		{agents.Set("archive", []agents.Op{
			{Op: "test", Path: "/open", Value: true}, {Op: "move", From: "/draft", Path: "/archived"}, {Path: "/open", Value: false},
		})},
		{agents.Sequence("order", agents.Steps{agents.Call[string]("reserve", "reserve", nil), agents.Call[string]("charge", "charge", nil)}, agents.Timeout(5*time.Minute))},
		charged(), classified(),
	}
}

// TestGoAndYAMLAgree: the page's examples in YAML and in Go have the same canonical form.
func TestGoAndYAMLAgree(t *testing.T) {
	t.Parallel()
	examples, made := pageExamples(t)[2:], inGo()
	if len(examples) != len(made) {
		t.Fatalf("number of examples in Go = %d, want %d as on the page", len(made), len(examples))
	}
	for i, yaml := range examples {
		want := parse(t, yaml)
		frame := *want
		frame.Steps = nil
		got, err := agents.New(frame, made[i]...)
		if err != nil {
			t.Errorf("%v in\n%s", err, yaml)
			continue
		}
		if diff := cmp.Diff(encodeDefinition(t, want), encodeDefinition(t, got)); diff != "" {
			t.Errorf("definition in Go (-YAML +Go):\n%s\n%s", diff, yaml)
		}
	}
}

// TestGoExampleEqualsPage: the page on pipelines in Go shows the example as it is compiled here.
func TestGoExampleEqualsPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/guides/pipelines-in-go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	if block == "" || !strings.Contains(string(source), block) {
		t.Errorf("block of the page: want it in example_test.go, got\n%s", block)
	}
	d, err := Research()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encodeDefinition(t, parse(t, pageExamples(t)[1])), encodeDefinition(t, d)); diff != "" {
		t.Errorf("definition in Go (-YAML +Go):\n%s", diff)
	}
}

// encodeDefinition returns the stored form of a definition.
func encodeDefinition(t *testing.T, d *agents.Definition) string {
	t.Helper()
	raw, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), ",", ",\n")
}

// TestErrorOfStepNamesKey: an error of an invalid step names its key.
func TestErrorOfStepNamesKey(t *testing.T) {
	t.Parallel()
	pay, other := agents.Call[charge]("pay", "pay", nil), agents.Call[charge]("other", "pay", nil)
	for want, step := range map[string]agents.Stepper{
		`steps[1].args.id is not a valid template: ${no_such_field_of_steps_pay}: 1:1: undeclared reference to 'no_such_field_of_steps_pay'`:     agents.Call[string]("x", "pay", agents.Args{"id": agents.Field(pay, &other.Out.ID)}),
		`steps[1].when refers to steps.later, and there is no such step`:                                                                         agents.Call[string]("x", "pay", nil, agents.When(agents.Expr[bool]("steps.later"))),
		`steps[1].output.schema is not a valid JSON Schema: of the type chan int: ForType(chan int): type chan int is unsupported by jsonschema`: agents.Ask[chan int]("x", inline("y"), ""),
		`steps[1].args has no JSON form: json: unsupported type: chan int`:                                                                       agents.Call[string]("x", "pay", agents.Args{"c": make(chan int)}),
		`steps[1].set[0] has no JSON form: json: unsupported value: NaN`:                                                                         agents.Set("x", []agents.Op{{Path: "/x", Value: math.NaN()}}),
		`steps[1].retry.attempts must be 1 to 100, not 0`:                                                                                        agents.Sequence("x", agents.Steps{other}, agents.Retry{}),
		`steps[1].tool "buy" is not one of the agent's tools`:                                                                                    agents.Call[string]("x", "buy", nil),
	} {
		_, err := agents.New(agents.Definition{Name: "a", Model: "p/m", Tools: []string{"pay"}}, pay, step)
		if err == nil || err.Error() != `agent definition "a": `+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	type inner struct{ Name string }
	type Base struct {
		Kind string `json:"kind"`
	}
	type outer struct {
		Base
		First  inner  `json:"first"`
		Second inner  `json:"x-second,omitempty"`
		Hidden string `json:"-"`
		Number int
	}
	step := agents.Call[outer]("a-b", "t", nil)
	second := agents.Field(step, &step.Out.Second)
	sum := agents.Expr[int]("steps.x + 1")
	for want, got := range map[string]agents.Reference{
		`steps["a-b"]`:                                   step,
		`steps["a-b"].kind`:                              agents.Field(step, &step.Out.Kind),
		`steps["a-b"].first`:                             agents.Field(step, &step.Out.First),
		`steps["a-b"].first.Name`:                        agents.Field(step, &step.Out.First.Name),
		`steps["a-b"]["x-second"]`:                       second,
		`steps["a-b"]["x-second"].Name`:                  agents.Field(second, &second.Out.Name),
		`steps["a-b"].Number`:                            agents.Field(step, &step.Out.Number),
		`no_such_field_of_steps_a_b_`:                    agents.Field(step, &step.Out.Hidden),
		`steps["a-b"].first["in"]["\"<"]`:                agents.Member[int](step, "first", "in", `"<`),
		`item`:                                           agents.Each("", agents.Expr[[]int]("[1]")),
		`(steps.x + 1).y`:                                agents.Member[int](sum, "y"),
		`(steps.x + 1) == 2`:                             agents.Equal(sum, 2),
		`steps["a-b"].kind == "<\"a\">"`:                 agents.Equal(agents.Field(step, &step.Out.Kind), `<"a">`),
		`steps.m.filter(x, "a-b" in x).map(x, x["a-b"])`: agents.Collect(agents.Map("m", agents.Each("", agents.Expr[[]int]("[1]")), nil), step),
	} {
		if got.Expr() != want || got.String() != "${"+want+"}" {
			t.Errorf("expression of a reference = %s, want %s", got.Expr(), want)
		}
	}
}

// TestGoTypesGiveSchemas: the schema of a Go type has what the type says, and options refine it.
func TestGoTypesGiveSchemas(t *testing.T) {
	t.Parallel()
	type line struct {
		Tags []string         `json:"tags,omitempty"`
		Size map[string][]int `json:"size"`
	}
	type answer struct {
		Kind  string          `json:"kind" jsonschema:"what it is about"`
		Lines []line          `json:"lines"`
		Note  *string         `json:"note"`
		More  json.RawMessage `json:"more"`
	}
	s := agents.Ask[answer]("x", inline("y"), "", agents.Refine(func(s *jsonschema.Schema) {
		s.Properties["kind"].Enum = []any{"a", "b"}
	})).Step
	d, err := agents.New(agents.Definition{Name: "a", Model: "p/m"}, s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: a
model: p/m
steps:
  - name: x
    agent: {instructions: "y"}
    output:
      schema:
        type: object
        additionalProperties: false
        required: [kind, lines, note, more]
        properties:
          kind: {type: string, description: what it is about, enum: [a, b]}
          note: {type: ["null", string]}
          more: true
          lines:
            type: array
            items:
              type: object
              additionalProperties: false
              required: [size]
              properties:
                tags: {type: array, items: {type: string}}
                size: {type: object, additionalProperties: {type: array, items: {type: integer}}}
`
	if diff := cmp.Diff(encodeDefinition(t, parse(t, want)), encodeDefinition(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(agents.Ask[chan int]("x", inline("y"), "").Step); err == nil {
		t.Error("Marshal of an answer without a schema: got no error, want one")
	}
	given := agents.Ask[answer]("x", inline("y"), "", agents.Schema([]byte(`{"type":"object"}`))).Step
	if got := string(given.Output.Schema); got != `{"type":"object"}` {
		t.Errorf("given schema of an answer = %s, want it unchanged", got)
	}
	for _, text := range []agents.Step{agents.Ask[string]("x", inline("y"), "").Step, agents.Ask[any]("x", inline("y"), "").Step} {
		if text.Output != nil {
			t.Errorf("schema of any text: got %s, want none", text.Output.Schema)
		}
	}
}

// pageExamples returns the page's definitions in YAML.
func pageExamples(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/guides/pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "- ") { // a list of steps
			block = "name: example\nmodel: p/m\ntools: [\"*\"]\nsteps:\n" + block
		}
		blocks[i] = block
	}
	return blocks
}
