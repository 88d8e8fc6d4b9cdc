package activities_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// helper returns an agent that can be a subagent.
func helper(name string, with ...string) *agents.Definition {
	return &agents.Definition{Name: name, Model: "test/" + name, Description: "Helps.", Instructions: "You are " + name + ".", Tools: with, Limits: agents.DefaultLimits()}
}

// setupSubagents returns a fixture whose agent may call subagents.
func setupSubagents(t *testing.T, s script, others []*agents.Definition, available ...tools.Tool) *fixture {
	t.Helper()
	e := setup(t, s, available...)
	e.others = map[string]*agents.Definition{}
	e.agent.Model, e.agent.Tools = "test/lead", nil
	for _, d := range others {
		e.others[d.Name] = d
	}
	e.agent.Tools = []string{"agent:" + others[0].Name}
	return e
}

// heard returns the messages of a request as text.
func heard(req *llm.Request) string {
	var lines []string
	for _, m := range req.Messages {
		line := string(m.Role) + ": " + m.Text()
		for _, c := range m.ToolCalls {
			line += " " + c.Name + c.Arguments
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestDelegation: a model calls a subagent twice in parallel. Each subagent gets only its task,
// calls its own tools, and its last answer is the result. Clients see the events of both, with
// their IDs. The models do not.
func TestDelegation(t *testing.T) {
	t.Parallel()
	add := tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	e := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case req.Model == "lead" && last.Role == llm.RoleUser:
			if len(req.Tools) != 1 || req.Tools[0].Name != "helper" || req.Tools[0].Description != "Helps." {
				t.Errorf("offered tools: got %+v", req.Tools)
			}
			return call([3]string{"1", "helper", `{"task":"1 2"}`}, [3]string{"2", "helper", `{"task":"3 4"}`})
		case req.Model == "lead":
			want := "system: Be brief.\nuser: go\nassistant:  helper{\"task\":\"1 2\"} helper{\"task\":\"3 4\"}\ntool: it is 3\ntool: it is 7"
			if got := heard(req); got != want && got != strings.ReplaceAll(want, "tool: it is 3\ntool: it is 7", "tool: it is 7\ntool: it is 3") {
				t.Errorf("messages sent: got\n%s\nwant\n%s", got, want)
			}
			return say("done")
		case last.Role == llm.RoleUser:
			if want := "system: You are helper.\nuser: " + last.Text(); heard(req) != want {
				t.Errorf("messages sent to the helper: got\n%s\nwant\n%s", heard(req), want)
			}
			a, b, _ := strings.Cut(last.Text(), " ")
			return call([3]string{"1", "add", fmt.Sprintf(`{"a":%s,"b":%s}`, a, b)})
		}
		return say("it is " + last.Text())
	}, []*agents.Definition{helper("helper", "add")}, add)
	events, result := e.run("go")
	if result.Outcome != runs.OutcomeSuccess || e.calls.Load() != 6 {
		t.Fatalf("got %+v after %d model calls", result, e.calls.Load())
	}
	for kind, want := range map[string]int{
		"SUBAGENT_STARTED": 2, "SUBAGENT_FINISHED": 2, "SUBAGENT_ERROR": 0, "TOOL_CALL_RESULT": 4, "STEP_STARTED": 3 + 2*3, "STEP_FINISHED": 3 + 2*3,
	} {
		if got := strings.Count(typesOf(events), kind); got != want {
			t.Errorf("%s: got %d, want %d", kind, got, want)
		}
	}
	usage := events[len(events)-1].(*agui.RunFinished).Usage
	if len(usage) != 1 || *usage[0].OutputTokens != 3*2 { // three answers with text; tool calls report zero
		t.Errorf("usage: got %+v", usage)
	}
	e.wantAsShown(events)
}

// wantAsShown checks that a live reader has the conversation of the log.
func (e *fixture) wantAsShown(events []agui.Event) {
	e.t.Helper()
	reader := agui.NewReducer([]agui.Message{{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("go")}}, nil)
	for _, event := range events {
		if err := reader.Apply(event); err != nil {
			e.t.Fatal(err)
		}
	}
	places := func(messages []agui.Message) []string {
		var all []string
		for _, m := range messages {
			all = append(all, fmt.Sprintf("%s %s %q %s", m.ID, m.Role, m.Content.Text(), m.SubagentRunID))
		}
		return all
	}
	if got, want := places(reader.Messages()), places(e.conversation()); !slices.Equal(got, want) {
		e.t.Errorf("messages of the reader: got\n%s\nwant those of the log\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDelegationThatFails: a failed subagent is a failed call. The model gets the error and
// continues.
func TestDelegationThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments string
		fails     error
		want      string
		errors    int
	}{
		"no task":      {`{"job":"x"}`, nil, "invalid arguments", 0},
		"model":        {`{"task":"x"}`, &llm.Error{Code: llm.CodeInvalidRequest, Message: "SECRET"}, "The agent did not finish its work: " + string(llm.CodeInvalidRequest), 1},
		"its own turn": {`{"task":"x"}`, nil, "The agent did not finish its work: limit_turns: the run reached its limit of 1 turns.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := helper("helper", "agent:helper")
			worker.Limits.Turns = 1
			e := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
				last := req.Messages[len(req.Messages)-1]
				switch {
				case req.Model == "lead" && last.Role == llm.RoleUser:
					return call([3]string{"1", "helper", c.arguments})
				case req.Model == "lead":
					if !last.IsError || !strings.Contains(last.Text(), c.want) || strings.Contains(last.Text(), "SECRET") {
						t.Errorf("result sent: got %+v, want %q", last, c.want)
					}
					return say("done")
				case c.fails != nil:
					return nil, c.fails
				}
				return call([3]string{"1", "nothing", `{}`})
			}, []*agents.Definition{worker})
			events, result := e.run("go")
			if result.Outcome != runs.OutcomeSuccess {
				t.Errorf("got %+v", result)
			}
			if got := strings.Count(typesOf(events), "SUBAGENT_ERROR"); got != c.errors {
				t.Errorf("failures shown: got %d, want %d:\n%s", got, c.errors, typesOf(events))
			}
			e.wantAsShown(events)
		})
	}
}

// TestDelegationEndsSomewhere: the depth of subagents is bounded. The last one is offered no
// subagents.
func TestDelegationEndsSomewhere(t *testing.T) {
	t.Parallel()
	deepest := 0
	e := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
			return say("back")
		}
		if deepest = n; len(req.Tools) == 0 {
			return say("at the bottom")
		}
		return call([3]string{"1", "helper", `{"task":"go on"}`})
	}, []*agents.Definition{helper("helper", "agent:helper")})
	events, result := e.run("go")
	if result.Outcome != runs.OutcomeSuccess || deepest != runs.MaxDepth {
		t.Errorf("got %+v with %d agents, want %d", result, deepest, runs.MaxDepth)
	}
	if got := strings.Count(typesOf(events), "SUBAGENT_FINISHED"); got != runs.MaxDepth-1 {
		t.Errorf("subagents: got %d, want %d", got, runs.MaxDepth-1)
	}
	e.wantAsShown(events)
}

// TestDelegationIsLimited: the number of subagents in a run is bounded, at any depth.
func TestDelegationIsLimited(t *testing.T) {
	t.Parallel()
	e := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model == "lead" {
			return call([3]string{"1", "helper", `{"task":"a"}`}, [3]string{"2", "helper", `{"task":"b"}`}, [3]string{"3", "helper", `{"task":"c"}`})
		}
		return say("done")
	}, []*agents.Definition{helper("helper")})
	e.limits.Turns = 1000
	e.limits.Tokens = 1 << 40
	events, result := e.run("go")
	if got := strings.Count(typesOf(events), "SUBAGENT_FINISHED"); result.Code != runs.CodeLimitSubagents || got != runs.MaxSubagents/3*3 {
		t.Errorf("got %+v after %d subagents", result, got)
	}
}

// TestAToolPrecedesAnAgentOfItsName: a tool precedes a subagent of the same name, which a pattern
// may match too.
func TestAToolPrecedesAnAgentOfItsName(t *testing.T) {
	t.Parallel()
	tool := tools.Func("helper", "helps", func(context.Context, struct {
		Task string `json:"task"`
	}) (string, error) {
		return "by the tool", nil
	})
	e := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
			return say(last.Text())
		}
		return call([3]string{"1", "helper", `{"task":"x"}`})
	}, []*agents.Definition{helper("helper")}, tool)
	e.agent.Tools = []string{"hel*", "agent:helper"}
	events, _ := e.run("go")
	if got := e.conversation(); got[len(got)-1].Content.Text() != "by the tool" || strings.Contains(typesOf(events), "SUBAGENT") {
		t.Errorf("conversation: got %+v", got)
	}
}

// TestBranchesDoNotCountForTheDepthOfSubagents: the depth of subagents counts agents. A branch of a
// pipeline has a lane of its own, but hands no work on.
func TestBranchesDoNotCountForTheDepthOfSubagents(t *testing.T) {
	t.Parallel()
	e := setupSubagents(t, nil, []*agents.Definition{{Name: "b", Model: "test/b"}})
	for name, tt := range map[string]struct {
		child *runs.Child
		want  int
	}{
		"the run's own agent":                   {nil, 1},
		"a subagent below branches":             {&runs.Child{Lanes: []int{0, 1, 2, 0}, Depth: 1}, 1},
		"the last subagent that may hand on":    {&runs.Child{Lanes: []int{0, 0}, Depth: runs.MaxDepth - 2}, 1},
		"a subagent at the bound of the depth":  {&runs.Child{Lanes: []int{0, 0, 0}, Depth: runs.MaxDepth - 1}, 0},
		"the same, below branches of pipelines": {&runs.Child{Lanes: []int{0, 1, 0, 0, 2}, Depth: runs.MaxDepth - 1}, 0},
	} {
		got, err := e.acts.OfferedSubagents(t.Context(), e.agent, tt.child)
		if err != nil || len(got) != tt.want {
			t.Errorf("%s: got the subagents %q, %v; want %d", name, got, err, tt.want)
		}
	}
}
