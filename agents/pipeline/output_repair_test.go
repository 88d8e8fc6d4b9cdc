package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

func TestRepairOfOutput(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: plan, agent: {instructions: x}, output: {schema: {type: object, required: [n], properties: {n: {type: integer}}}, repairs: 1}, onError: continue}
`
	for _, tt := range []struct {
		name, first, second string
		wantState           string
		wantAttempts        int
	}{
		{"valid at first", `"{\"n\":1}"`, ``, `{"perdure.steps":{"plan":{"n":1}}}`, 1},
		{"in a block of code", "\"Here:\\n```json\\n{\\\"n\\\": 2}\\n```\\nThere.\"", ``, `{"perdure.steps":{"plan":{"n":2}}}`, 1},
		{"then", `"one"`, `"{\"n\":3}"`, `{"perdure.steps":{"plan":{"n":3}}}`, 2},
		{"never", `"{}"`, `"{\"n\":\"x\"}"`, `{"perdure.steps":{"plan":{"error":{"code":"invalid_output","message":"step \"plan\": the answer does not fit the schema: at /n: got string, want integer"}}}}`, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, steps)
			var repairs []string
			f.eventOf = func(a pipeline.Action, n int) pipeline.Event {
				if len(a.Agent.Schema) == 0 {
					t.Error("schema of the agent: got none, want one")
				}
				repairs = append(repairs, a.Agent.Repair)
				if n == 1 {
					return doneEvent(tt.first)
				}
				return doneEvent(tt.second)
			}
			f.run()
			if f.attempts["plan"] != tt.wantAttempts || repairs[0] != "" {
				t.Errorf("attempts = %v with the repairs %q, want %d attempts, the first without a repair", f.attempts, repairs, tt.wantAttempts)
			}
			if tt.wantAttempts == 2 && !strings.Contains(repairs[1], "Your last answer is not valid: ") {
				t.Errorf("second repair = %q, want the validation error", repairs[1])
			}
			if diff := cmp.Diff(decodeJSON(t, tt.wantState), decodeJSON(t, string(f.state))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"+plan", "-plan"}, f.stepEvents); diff != "" {
				t.Errorf("step events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - name: group
    timeout: 1m
    onError: {steps: [{name: late, tool: l, args: {code: "${error.code}"}}]}
    steps:
      - {name: a, tool: a, timeout: 2m}
      - {name: b, tool: b, timeout: 10s, retry: {attempts: 9, interval: 9s, backoff: 1}}
      - {name: c, tool: c}
  - {name: after, tool: x}
`
	f := setup(t, steps)
	start := f.now
	f.eventOf = func(a pipeline.Action, _ int) pipeline.Event {
		switch {
		case a.Path == "group/a":
			f.now = f.now.Add(45 * time.Second)
		case strings.HasPrefix(a.Path, "group/b"):
			f.now = f.now.Add(6 * time.Second)
			return failedEvent("slow")
		}
		return doneEvent(`1`)
	}
	if failure := f.run(); failure != nil {
		t.Errorf("failure = %+v, want none", failure)
	}
	// The second attempt of b would pass b's own ten seconds, so it fails, and the group with it.
	want := []string{"group/a a{}", "group/b b{}", `group~error/late l{"code":"slow"}`, "after x{}"}
	if diff := cmp.Diff(want, f.executedActions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	deadlines := []time.Time{start.Add(time.Minute), start.Add(55 * time.Second), {}, {}}
	if diff := cmp.Diff(deadlines, f.deadlines); diff != "" {
		t.Errorf("deadlines (-want +got):\n%s", diff)
	}

	f = setup(t, steps)
	f.eventOf = func(a pipeline.Action, _ int) pipeline.Event {
		if a.Path == "group/a" {
			f.now = f.now.Add(time.Minute)
		}
		return doneEvent(`1`)
	}
	f.run()
	want = []string{"group/a a{}", `group~error/late l{"code":"timeout"}`, "after x{}"}
	if diff := cmp.Diff(want, f.executedActions); diff != "" {
		t.Errorf("did when the group's time was over (-want +got):\n%s", diff)
	}
}

func TestCancelledRunCompensates(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: b, compensate: {tool: cancel}}
  - {name: group, retry: {attempts: 5}, onError: continue, steps: [{name: pay, tool: p, compensate: {tool: refund}}, {name: ship, tool: s, onError: continue}]}
`
	f := setup(t, steps)
	f.cancelAfter = 3
	failure := f.run()
	if failure == nil || failure.Code != "cancelled" {
		t.Errorf("failure = %+v, want cancelled", failure)
	}
	want := []string{"book b{}", "group/pay p{}", "group/ship s{}", "group/pay~undo refund{}", "book~undo cancel{}"}
	if diff := cmp.Diff(want, f.executedActions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	// A cancelled compensation does not keep the others from running.
	f = setup(t, steps)
	f.cancelAfter = 4
	f.eventOf = eventsByPath(map[string]string{"book~undo": `1`, "group/ship": `1`})
	f.definition.Steps = append(f.definition.Steps, agents.Step{Name: "last", Tool: "last"})
	f.eventOf = eventsByPath(map[string]string{"last": "!x"})
	f.cancelAfter = 5
	failure = f.run()
	if failure == nil || failure.Code != "x" || failure.Message != `step "last": it broke; could not compensate for group/pay` {
		t.Errorf("failure = %+v, want x of the step last, with the failed compensation", failure)
	}
	if last := f.executedActions[len(f.executedActions)-1]; last != "book~undo cancel{}" {
		t.Errorf("executed actions = %q, want book~undo last", f.executedActions)
	}
}

// TestFailureNamesStep: the failure of a run names the failed step, also in a branch.
func TestFailureNamesStep(t *testing.T) {
	t.Parallel()
	for steps, want := range map[string]string{
		`steps: [{name: one, tool: t}]`:                                                                        `step "one": it broke`,
		`steps: [{name: group, steps: [{name: one, tool: t}]}]`:                                                `step "group/one": it broke`,
		`steps: [{name: all, parallel: [{name: left, tool: l}, {name: one, steps: [{name: in, tool: t}]}]}]`:   `step "one": it broke`,
		`steps: [{name: all, map: {items: "['a']", steps: [{name: one, tool: t}]}}]`:                           `step "all": it broke`,
		`steps: [{name: all, map: {items: "['a']", steps: [{name: one, tool: t, args: {x: "${state.no}"}}]}}]`: `step "one": args: `,
	} {
		f := setup(t, steps)
		f.eventOf = func(a pipeline.Action, _ int) pipeline.Event {
			if a.Tool != nil && a.Tool.Tool == "t" {
				return failedEvent("x")
			}
			return doneEvent(`1`)
		}
		if failure := f.run(); failure == nil || !strings.HasPrefix(failure.Message, want) {
			t.Errorf("%s: ended with %+v, want %s", steps, failure, want)
		}
	}
	f := setup(t, `steps: [{name: one, tool: t}]`)
	f.eventOf = func(pipeline.Action, int) pipeline.Event {
		return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: "x"}}
	}
	if failure := f.run(); failure == nil || failure.Code != "x" || failure.Message != `step "one" failed` {
		t.Errorf("failure without a message = %+v, want x of the step one", failure)
	}
}

func TestCancelledBranches(t *testing.T) {
	t.Parallel()
	f := setup(t, `
steps:
  - name: all
    map: {items: "['a','b','c']", steps: [{name: one, tool: o, compensate: {tool: undo, args: {item: "${item}"}}}, {name: two, tool: t}]}
`)
	f.cancelAfter = 4
	if failure := f.run(); failure == nil || failure.Code != "cancelled" {
		t.Errorf("failure = %+v, want cancelled", failure)
	}
	want := []string{"all/0/one o{}", "all/0/two t{}", "all/1/one o{}", "all/1/two t{}", `all/1/one~undo undo{"item":"b"}`, `all/0/one~undo undo{"item":"a"}`}
	// The fixture reports the cancel with the cancelled branches. The second branch is one of them.
	if diff := cmp.Diff(want, f.executedActions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestInvalidStates: clients change the state too. Outputs are stored whatever the state contains.
func TestInvalidStates(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: a, tool: a}
  - {name: rows, map: {items: "[1,2]", onError: continue, steps: [{name: b, tool: b}]}}
  - {name: c, tool: c}
`
	for _, odd := range []string{``, `null`, `7`, `"x"`, `[1]`, `{"perdure.steps":4,"keep":1}`, `{"perdure.steps":[]}`, `{"perdure.steps":{"a":{"old":1},"rows":3},"keep":1}`} {
		f := setup(t, steps)
		f.state = json.RawMessage(odd)
		if odd == "" {
			f.state = json.RawMessage("null")
		}
		f.eventOf = func(a pipeline.Action, _ int) pipeline.Event {
			if a.Path == "rows/1/b" { // while the branches run
				state, _ := json.Marshal(map[string]any{"perdure.steps": []any{odd}})
				f.state = state
			}
			return doneEvent(`"` + a.Path + `"`)
		}
		if failure := f.run(); failure != nil {
			t.Errorf("state %s: failure = %+v, want none", odd, failure)
		}
		want := `{"perdure.steps":{"rows":[null,{"b":"rows/1/b"}],"c":"c"}}`
		if diff := cmp.Diff(decodeJSON(t, want), decodeJSON(t, string(f.state))); diff != "" {
			t.Errorf("%s: state (-want +got):\n%s", odd, diff)
		}
	}
}

// TestOutputsOfNestedTree: a tree that is a subagent sees and changes only its own outputs,
// and leaves none.
func TestOutputsOfNestedTree(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		f := setup(t, `
steps:
  - {name: a, tool: a, compensate: {tool: undo, args: {a: "${steps.a}"}}}
  - {name: rows, map: {items: "[1,2]", steps: [{name: b, tool: b, args: {a: "${steps.a}", n: "${size(steps)}"}}]}}
  - {name: c, tool: c, args: {rows: "${steps.rows.map(r, r.b)}"}}
`)
		f.home = "agent:call/1"
		f.state = json.RawMessage(`{"perdure.steps":{"outer":1,"a":"outer"}}`)
		within := ""
		f.eventOf = func(a pipeline.Action, _ int) pipeline.Event {
			if a.Path != "c" {
				return doneEvent(`"` + a.Path + `"`)
			}
			within = string(f.state)
			if broken {
				return failedEvent("no")
			}
			return doneEvent(`1`)
		}
		if failure := f.run(); (failure != nil) != broken {
			t.Errorf("failure = %+v, want one: %t", failure, broken)
		}
		want := "a a{}|rows/0/b b{\"a\":\"a\",\"n\":2}|rows/1/b b{\"a\":\"a\",\"n\":2}|c c{\"rows\":[\"rows/0/b\",\"rows/1/b\"]}"
		if broken {
			want += "|a~undo undo{\"a\":\"a\"}"
		}
		if got := strings.Join(f.executedActions, "|"); got != want {
			t.Errorf("did %s, want %s", got, want)
		}
		own := `{"perdure.steps":{"outer":1,"a":"outer","agent:call/1":{"a":"a","rows":[{"b":"rows/0/b"},{"b":"rows/1/b"}]}}}`
		if diff := cmp.Diff(decodeJSON(t, own), decodeJSON(t, within)); diff != "" {
			t.Errorf("state within (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(decodeJSON(t, `{"perdure.steps":{"outer":1,"a":"outer"}}`), decodeJSON(t, string(f.state))); diff != "" {
			t.Errorf("state at the end (-want +got):\n%s", diff)
		}
	}
}

// TestConcurrentOutputs: branches of an item that end at the same moment have not seen each
// other's outputs. Both outputs are kept.
func TestConcurrentOutputs(t *testing.T) {
	t.Parallel()
	f := setup(t, `steps: [{name: rows, map: {items: "[1]", steps: [{name: both, parallel: [{name: left, tool: l}, {name: right, tool: r}]}]}}]`)
	next := func(at pipeline.TreePosition, ev pipeline.Event, items ...json.RawMessage) pipeline.Advanced {
		t.Helper()
		m, err := pipeline.Advance(f.definition, at, ev, pipeline.Env{State: f.state, Items: items, Now: f.now})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	begun, item := pipeline.Event{Kind: pipeline.EventBegun}, json.RawMessage("1")
	rows := next(pipeline.TreePosition{}, begun)
	f.recordChanges(rows.Changes, nil)
	both := next(pipeline.TreePosition{Branch: rows.Position.Into(rows.Action.Path, 0)}, begun, item)
	var changes []pipeline.Change
	for i, name := range []string{"left", "right"} {
		called := next(pipeline.TreePosition{Branch: both.Position.Into(both.Action.Path, i)}, begun, item, nil)
		for _, c := range next(called.Position, doneEvent(`"`+name+`"`), item, nil).Changes {
			if c.Patch != nil {
				changes = append(changes, c)
			}
		}
	}
	f.recordChanges(changes, nil)
	if diff := cmp.Diff(decodeJSON(t, `{"perdure.steps":{"rows":[{"left":"left","right":"right"}]}}`), decodeJSON(t, string(f.state))); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestRunBeginsWithoutOutputs(t *testing.T) {
	t.Parallel()
	f := setup(t, `steps: [{name: a, tool: a}, {name: c, tool: c}]`)
	f.definition.Steps[0].When = "!has(steps.old)"
	f.state = json.RawMessage(`{"perdure.steps":{"old":1},"mine":2}`)
	f.run()
	if diff := cmp.Diff(decodeJSON(t, `{"perdure.steps":{"a":"ok","c":"ok"},"mine":2}`), decodeJSON(t, string(f.state))); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	big, _ := json.Marshal(strings.Repeat("x", agents.MaxOutput))
	list := "[" + strings.Repeat("0,", agents.MaxItems) + "0]"
	for _, tt := range []struct {
		name, steps, state, answer, wantCode string
	}{
		{"items", `steps: [{name: m, map: {items: state.list, steps: [{name: a, tool: a}]}}]`, `{"list":` + list + `}`, `1`, "limit_items"},
		{"output", `steps: [{name: a, tool: a}]`, `{}`, string(big), "output_too_large"},
		{"argument", `steps: [{name: a, tool: a, args: {x: "${state.x}${state.x}"}}]`, `{"x":` + string(big[:600_000]) + `"}`, `1`, "input_too_large"},
		{"prompt", `steps: [{name: a, agent: b, input: "${state.x}${state.x}"}]`, `{"x":` + string(big[:600_000]) + `"}`, `1`, "input_too_large"},
		{"cost", `steps: [{name: a, tool: a, when: "state.list.all(x, state.list.all(y, x == y))"}]`, `{"list":` + list + `}`, `1`, "invalid_expression"},
		{"compensations", `steps: [{name: l, loop: {max: 1000, steps: [{name: a, tool: a, compensate: {tool: b}}]}}]`, `{}`, `1`, "limit_compensations"},
		{"no list", `steps: [{name: m, map: {items: state.list, steps: [{name: a, tool: a}]}}]`, `{"list":{}}`, `1`, "invalid_expression"},
		{"no condition", `steps: [{name: a, tool: a, when: state.list}]`, `{"list":"secret"}`, `1`, "invalid_expression"},
		{"no number", `steps: [{name: a, tool: a, args: {x: "${int(state.list)}"}}]`, `{"list":"secret"}`, `1`, "invalid_expression"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, tt.steps)
			f.state = json.RawMessage(tt.state)
			f.eventOf = func(pipeline.Action, int) pipeline.Event { return doneEvent(tt.answer) }
			failure := f.run()
			if failure == nil || failure.Code != tt.wantCode {
				t.Fatalf("ended with %+v, want %s", failure, tt.wantCode)
			}
			if strings.Contains(failure.Message, "secret") || !strings.Contains(failure.Message, `step "`) {
				t.Errorf("message of the failure = %q, want the step without secrets", failure.Message)
			}
		})
	}
}

func TestInvalidPositions(t *testing.T) {
	t.Parallel()
	d := setup(t, `steps: [{name: a, tool: a}, {name: g, steps: [{name: b, tool: b}]}, {name: m, map: {items: "[1]", steps: [{name: c, tool: c}]}}]`).definition
	for i, tt := range []struct {
		position pipeline.TreePosition
		event    pipeline.Event
	}{
		{pipeline.TreePosition{}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 3}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: -1}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0}, {At: 0}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 1}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0}}}, pipeline.Event{Kind: pipeline.EventBegun}},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0}}}, pipeline.Event{Kind: pipeline.EventJoined}},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 2}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0}}}, pipeline.Event{Kind: pipeline.EventWoken}},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0, Waiting: true}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Frames: []pipeline.Frame{{At: 0}}}, pipeline.Event{Kind: "else"}},
		{pipeline.TreePosition{Branch: []pipeline.BranchRef{{Path: "nowhere"}}}, pipeline.Event{Kind: pipeline.EventBegun}},
		{pipeline.TreePosition{Branch: []pipeline.BranchRef{{Path: ""}}}, pipeline.Event{Kind: pipeline.EventBegun}},
		{pipeline.TreePosition{Branch: []pipeline.BranchRef{{Path: "a"}}}, pipeline.Event{Kind: pipeline.EventBegun}},
		{pipeline.TreePosition{Branch: []pipeline.BranchRef{{Path: "m", Index: -1}}}, pipeline.Event{Kind: pipeline.EventBegun}},
		{pipeline.TreePosition{Undoing: &pipeline.Failure{}, Frames: []pipeline.Frame{{}}}, doneEvent(`1`)},
		{pipeline.TreePosition{Undoing: &pipeline.Failure{}, Undo: []string{"x"}, Frames: []pipeline.Frame{{}}}, doneEvent(`1`)},
	} {
		if m, err := pipeline.Advance(d, tt.position, tt.event, pipeline.Env{}); !errors.Is(err, pipeline.ErrPosition) {
			t.Errorf("Advance from position %d: got %+v, %v, want %v", i, m, err, pipeline.ErrPosition)
		}
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	f := setup(t, `
approvals: [{tools: [pay]}]
limits: {turns: 3, tokens: 7}
steps:
  - {name: a, agent: {instructions: Told., tools: [pay], model: q/n, limits: {turns: 2}}, compensate: {agent: {instructions: Undo.}}}
  - {name: b, agent: other}
`)
	got, err := pipeline.Inline(f.definition, "x/7/a~2")
	if err != nil {
		t.Fatal(err)
	}
	want := &agents.Definition{
		Name: "a.a", Model: "q/n", Instructions: "Told.", Tools: []string{"pay"}, Approvals: f.definition.Approvals,
		Limits: agents.Limits{Turns: 2, Tokens: 7, Duration: 2 * time.Hour, ParallelTools: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := pipeline.Inline(f.definition, "a~2~undo"); err != nil || got.Instructions != "Undo." || got.Model != "p/m" {
		t.Errorf("Inline of a compensation = %+v, %v, want the instructions Undo.", got, err)
	}
	for _, path := range []string{"b", "none", "", "a/"} {
		if got, err := pipeline.Inline(f.definition, path); err == nil {
			t.Errorf("Inline of %q = %+v, want an error", path, got)
		}
	}
	if got := fmt.Sprint(f.definition.StepAgents(), f.definition.StepTools(), f.definition.InlineTools()); got != "[other] [] [pay]" {
		t.Errorf("agents and tools of the steps = %s, want %s", got, "[other] [] [pay]")
	}
}

// TestUnvalidatedTrees: a program may create trees that were not validated. They fail, and do no
// harm.
func TestUnvalidatedTrees(t *testing.T) {
	t.Parallel()
	none := []agents.Step{}
	tool := []agents.Step{{Name: "x", Tool: "t"}}
	for name, tt := range map[string]struct {
		step     agents.Step
		wantCode string
	}{
		"no kind":            {agents.Step{Name: "a"}, "invalid_step"},
		"nothing":            {agents.Step{}, "invalid_step"},
		"empty steps":        {agents.Step{Name: "a", Steps: none}, ""},
		"empty loop":         {agents.Step{Name: "a", Loop: &agents.LoopStep{Max: 3}}, ""},
		"empty case":         {agents.Step{Name: "a", Route: []agents.Case{{}}}, ""},
		"empty parallel":     {agents.Step{Name: "a", Parallel: &agents.ParallelStep{}}, ""},
		"empty map":          {agents.Step{Name: "a", Map: &agents.MapStep{Items: "[1]"}}, ""},
		"empty onError":      {agents.Step{Name: "a", Set: []agents.Op{{Path: "no pointer"}}, OnError: agents.OnError{Steps: none}}, ""},
		"no expression":      {agents.Step{Name: "a", Tool: "t", When: "1 +"}, "invalid_expression"},
		"no items":           {agents.Step{Name: "a", Map: &agents.MapStep{Steps: tool}}, "invalid_expression"},
		"no schema":          {agents.Step{Name: "a", Agent: &agents.AgentStep{}, Output: &agents.Output{}}, "invalid_output"},
		"no patch":           {agents.Step{Name: "a", Set: []agents.Op{{Op: "put", Path: "/a"}}}, "invalid_expression"},
		"empty compensation": {agents.Step{Name: "a", Steps: []agents.Step{{Name: "b", Tool: "t", Compensate: &agents.Step{}}, {Name: "c"}}}, "invalid_step"},
	} {
		f := setupDefinition(t, &agents.Definition{Name: "a", Model: "p/m", Steps: []agents.Step{tt.step}})
		failure := f.run()
		if code := codeOf(failure); code != tt.wantCode {
			t.Errorf("%s: %+v, want %q", name, failure, tt.wantCode)
		}
	}
	if failure := setupDefinition(t, &agents.Definition{Name: "a"}).run(); failure != nil {
		t.Errorf("failure without steps = %+v, want none", failure)
	}
}

// codeOf returns the code of a failure; "" = none.
func codeOf(f *pipeline.Failure) string {
	if f == nil {
		return ""
	}
	return f.Code
}
