package pipelines

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// repairable is a pipeline whose third step fails: THIRD is its expression.
const repairable = `name: repairable
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - {name: first, tool: calculate, args: {expression: "40+2"}}
  - {name: second, tool: calculate, args: {expression: "${string(steps.first)}*2"}}
  - {name: third, tool: calculate, args: {expression: "THIRD"}}
  - {name: fourth, tool: calculate, args: {expression: "${string(steps.third)}+${input.text}"}}
`

// TestForkAndRepair: a pipeline fails at its third step. A fork after the second one begins with the
// outputs until then. After the state, or the definition, was changed, it continues with the third
// step and finishes.
func TestForkAndRepair(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, strings.Replace(repairable, "THIRD", "${string(steps.second)}+${string(state.rate)}", 1))
	in := kit.NewInput("1")
	failed := p.FollowAgent(t, "/v1/agents/repairable/runs", in)
	failed.Finish(t)
	if last := failed.Events[len(failed.Events)-1]; last.Member("code") != "invalid_expression" {
		t.Fatalf("the run ended with %s, want the failure of the third step", last.Data)
	}

	var points struct {
		Items []struct{ Cursor, Kind, Name string }
	}
	run := "/v1/threads/" + in.ThreadID + "/runs/" + in.RunID
	p.GetJSON(t, run+"/forkpoints", &points)
	var names []string
	for _, point := range points.Items {
		names = append(names, point.Kind+" "+point.Name)
	}
	if !slices.Equal(names, []string{"step first", "step second", "end "}) {
		t.Fatalf("fork points = %q, want the two finished steps and the end", names)
	}
	after := points.Items[1].Cursor
	shown := slices.IndexFunc(failed.Events, func(e kit.Event) bool {
		return e.Type == "STEP_FINISHED" && e.Member("stepName") == "second"
	})
	if shown < 0 || !strings.HasPrefix(failed.Events[shown].ID, after[:17]) {
		t.Errorf("the fork point has the cursor %s, want that of the event %+v", after, failed.Events[max(0, shown)])
	}

	var problem struct {
		Code, Pointer string
		ForkPoints    []struct{ Cursor string }
	}
	resp, err := p.Post(t.Context(), run+"/fork", map[string]any{"at": failed.Events[1].ID})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil || resp.StatusCode != http.StatusUnprocessableEntity {
		t.Fatalf("fork within a step: got %s %v, want 422", resp.Status, err)
	}
	if problem.Code != "not_a_fork_point" || problem.Pointer != "/at" || len(problem.ForkPoints) == 0 || problem.ForkPoints[0].Cursor != points.Items[0].Cursor {
		t.Errorf("fork within a step: got %+v, want the first step as the nearest point", problem)
	}

	// The state is the repair.
	fork := strings.TrimSpace(p.StartCommand(t, "threads", "fork", in.ThreadID, in.RunID, "--at", after).Finish(t, 0))
	if got := stateText(t, p.Endpoint, fork); got != `{"perdure.steps":{"first":42,"second":84}}` {
		t.Errorf("state of the fork = %s, want the outputs of the first two steps", got)
	}
	p.StartCommand(t, "run", "repairable", "--thread", fork, "--state", `{"rate":6}`).Finish(t, 0)
	wantRepaired(t, p.Endpoint, fork, `{"perdure.steps":{"first":42,"fourth":91,"second":84,"third":90},"rate":6}`)

	// The definition is the repair.
	p.Publish(t, "repairable", strings.Replace(repairable, "THIRD", "${string(steps.second)}+5", 1))
	again := kit.Input{ThreadID: kit.NewThread(), RunID: "run-1", ProtocolVersion: "1.0", Messages: []kit.Message{}}
	resp, err = p.Post(t.Context(), run+"/fork", map[string]any{"at": failed.Events[shown].ID, "threadId": again.ThreadID})
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("fork at the cursor of the event: got %v %v, want 201", resp, err)
	}
	resp.Body.Close()
	repaired := p.FollowAgent(t, "/v1/agents/repairable/runs", again)
	repaired.UntilSuccess(t)
	if began := startedSteps(repaired.Events); !slices.Equal(began, []string{"third", "fourth"}) {
		t.Errorf("the fork began the steps %q, want the third and the fourth", began)
	}
	wantRepaired(t, p.Endpoint, again.ThreadID, `{"perdure.steps":{"first":42,"fourth":90,"second":84,"third":89}}`)
}

// startedSteps returns the steps of a pipeline that began, without those in other steps.
func startedSteps(events []kit.Event) (names []string) {
	for _, e := range events {
		if name := e.Member("stepName"); e.Type == "STEP_STARTED" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

// stateText returns the state of a thread as JSON.
func stateText(t *testing.T, p *kit.Endpoint, thread string) string {
	t.Helper()
	text, err := json.Marshal(p.StateOf(t, kit.Input{ThreadID: thread}))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantRepaired checks the state of a fork at its end.
func wantRepaired(t *testing.T, p *kit.Endpoint, thread, want string) {
	t.Helper()
	if got := stateText(t, p, thread); got != want {
		t.Errorf("state of the fork %s = %s, want %s", thread, got, want)
	}
}

// nested is a pipeline whose tool calls are in branches, in a loop, in a case and in a group. FAILS is
// the expression of its last step.
const nested = `name: nested
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - name: both
    parallel:
      - {name: left, tool: calculate, args: {expression: "1+1"}}
      - {name: right, steps: [{name: deep, tool: calculate, args: {expression: "2+2"}}]}
  - name: group
    steps:
      - {name: again, loop: {max: 3, steps: [{name: inner, tool: calculate, args: {expression: "${string(round)}+3"}}]}}
      - {name: choose, route: [{when: "true", steps: [{name: chosen, tool: calculate, args: {expression: "${string(steps.inner)}*2"}}]}]}
      - {name: last, tool: calculate, args: {expression: "FAILS"}}
`

// TestForkInOtherSteps: a run can be forked after a step in a group, a loop or a case. The fork goes
// on there: in the same round, and with the outputs until then. A step in a branch is no fork point,
// and the error says why.
func TestForkInOtherSteps(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, strings.Replace(nested, "FAILS", "${string(state.rate)}", 1))
	in := kit.NewInput("1")
	f := p.FollowAgent(t, "/v1/agents/nested/runs", in)
	f.Finish(t)
	if last := f.Events[len(f.Events)-1]; last.Member("code") != "invalid_expression" {
		t.Fatalf("the run ended with %s, want the failure of the last step", last.Data)
	}
	run := "/v1/threads/" + in.ThreadID + "/runs/" + in.RunID
	var points struct {
		Items []struct{ Cursor, Kind, Name string }
	}
	p.GetJSON(t, run+"/forkpoints", &points)
	cursors := map[string]string{}
	var names []string
	for _, point := range points.Items {
		names, cursors[point.Name] = append(names, point.Kind+" "+point.Name), point.Cursor
	}
	want := []string{"step both", "step group/again/1/inner", "step group/again/2/inner", "step group/again/3/inner", "step group/again", "step group/choose/chosen", "step group/choose", "end "}
	if !slices.Equal(names, want) {
		t.Fatalf("fork points = %q, want %q", names, want)
	}

	for name, want := range map[string]string{
		"left":       `the step "left" is in a branch or a subagent`,
		"right/deep": `the step "right/deep" is in a branch or a subagent`,
		"group/last": `the step "group/last" is a turn in another step or the last step, has failed,`,
	} {
		at := slices.IndexFunc(f.Events, func(e kit.Event) bool { return e.Type == "STEP_FINISHED" && e.Member("stepName") == name })
		if at < 0 {
			t.Fatalf("events of the run: got no end of the step %s", name)
		}
		resp, err := p.Post(t.Context(), run+"/fork", map[string]any{"at": f.Events[at].ID})
		if problem := kit.ReadProblem(t, resp, err); problem.Code != "not_a_fork_point" || !strings.Contains(problem.Detail, want) || !strings.Contains(problem.Detail, ": use ") {
			t.Errorf("fork after %s: got %+v, want not_a_fork_point with %q and the nearest points", name, problem, want)
		}
	}

	p.Publish(t, "nested", strings.Replace(nested, "FAILS", "${string(steps.chosen)}+1", 1))
	for name, want := range map[string][]string{
		"group/again/2/inner": {"group", "group/again", "group/again/inner", "group/choose", "group/choose/chosen", "group/last"},
		"group/again/3/inner": {"group", "group/again", "group/choose", "group/choose/chosen", "group/last"},
		"group/choose/chosen": {"group", "group/choose", "group/last"},
		"group/choose":        {"group", "group/last"},
	} {
		fork := kit.Input{ThreadID: kit.NewThread(), RunID: "run-1", ProtocolVersion: "1.0", Messages: []kit.Message{}}
		resp, err := p.Post(t.Context(), run+"/fork", map[string]any{"at": cursors[name], "threadId": fork.ThreadID})
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("fork after %s: got %v %v, want 201", name, resp, err)
		}
		resp.Body.Close()
		repaired := p.FollowAgent(t, "/v1/agents/nested/runs", fork)
		repaired.UntilSuccess(t)
		var began []string
		for _, e := range repaired.Events {
			if e.Type == "STEP_STARTED" && !strings.HasSuffix(e.Member("stepName"), "/tools") {
				began = append(began, e.Member("stepName"))
			}
		}
		if !slices.Equal(began, want) {
			t.Errorf("the fork after %s began the steps %q, want %q", name, began, want)
		}
		wantRepaired(t, p.Endpoint, fork.ThreadID, `{"perdure.steps":{"chosen":12,"deep":4,"inner":6,"last":13,"left":2}}`)
	}
}

// TestForkAfterRepairedAnswer: a fork after a step whose answer was sent back has the text of the user as its input, and not
// the message that has sent the answer back.
func TestForkAfterRepairedAnswer(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, `name: measured
model: scripted/measured
tools: [calculate]
steps:
  - {name: total, agent: {}, output: {schema: {type: integer}}}
  - {name: sum, tool: calculate, args: {expression: "${string(steps.total)}+${string(state.rate)}+${input.text}"}}
---
kind: script
name: measured
turns:
  - {when: is not valid, steps: [{say: "84"}]}
  - {steps: [{say: eighty-four}]}
`)
	in := kit.NewInput("1")
	p.FollowAgent(t, "/v1/agents/measured/runs", in).Finish(t)
	var points struct {
		Items []struct{ Cursor, Name string }
	}
	p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/forkpoints", &points)
	at := slices.IndexFunc(points.Items, func(point struct{ Cursor, Name string }) bool { return point.Name == "total" })
	if at < 0 {
		t.Fatalf("fork points = %+v, want the first step", points.Items)
	}
	fork := strings.TrimSpace(p.StartCommand(t, "threads", "fork", in.ThreadID, in.RunID, "--at", points.Items[at].Cursor).Finish(t, 0))
	p.StartCommand(t, "run", "measured", "--thread", fork, "--state", `{"rate":6}`).Finish(t, 0)
	if got := stateText(t, p.Endpoint, fork); got != `{"perdure.steps":{"sum":91,"total":84},"rate":6}` {
		t.Errorf("state of the fork = %s, want the sum with the user's text", got)
	}
}
