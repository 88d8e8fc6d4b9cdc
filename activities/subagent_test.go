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

// subagentDefinition returns an agent that can be a subagent.
func subagentDefinition(name string, with ...string) *agents.Definition {
	return &agents.Definition{Name: name, Model: "test/" + name, Description: "Helps.", Instructions: "You are " + name + ".", Tools: with, Limits: agents.DefaultLimits()}
}

// setupSubagents returns a fixture whose agent may call subagents.
func setupSubagents(t *testing.T, s script, others []*agents.Definition, available ...tools.Tool) *fixture {
	t.Helper()
	fixture := setup(t, s, available...)
	fixture.others = map[string]*agents.Definition{}
	fixture.agent.Model, fixture.agent.Tools = "test/lead", nil
	for _, d := range others {
		fixture.others[d.Name] = d
	}
	fixture.agent.Tools = []string{"agent:" + others[0].Name}
	return fixture
}

// requestText returns the messages of a request as text.
func requestText(req *llm.Request) string {
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

// TestSubagentExecutesToolCall: a model calls a subagent twice in parallel. Each subagent gets only
// its task, calls its own tools, and its last answer is the result. Clients see the events of both,
// with their IDs. The models do not.
func TestSubagentExecutesToolCall(t *testing.T) {
	t.Parallel()
	add := tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case req.Model == "lead" && last.Role == llm.RoleUser:
			if len(req.Tools) != 1 || req.Tools[0].Name != "helper" || req.Tools[0].Description != "Helps." {
				t.Errorf("offered tools: got %+v, want the helper", req.Tools)
			}
			return callAnswer([3]string{"1", "helper", `{"task":"1 2"}`}, [3]string{"2", "helper", `{"task":"3 4"}`})
		case req.Model == "lead":
			want := "system: Be brief.\nuser: go\nassistant:  helper{\"task\":\"1 2\"} helper{\"task\":\"3 4\"}\ntool: it is 3\ntool: it is 7"
			if got := requestText(req); got != want && got != strings.ReplaceAll(want, "tool: it is 3\ntool: it is 7", "tool: it is 7\ntool: it is 3") {
				t.Errorf("messages sent: got\n%s\nwant\n%s", got, want)
			}
			return textAnswer("done")
		case last.Role == llm.RoleUser:
			if want := "system: You are helper.\nuser: " + last.Text(); requestText(req) != want {
				t.Errorf("messages sent to the helper: got\n%s\nwant\n%s", requestText(req), want)
			}
			a, b, _ := strings.Cut(last.Text(), " ")
			return callAnswer([3]string{"1", "add", fmt.Sprintf(`{"a":%s,"b":%s}`, a, b)})
		}
		return textAnswer("it is " + last.Text())
	}, []*agents.Definition{subagentDefinition("helper", "add")}, add)
	events, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", fixture.calls.Load(), 6)
	for kind, want := range map[string]int{
		"SUBAGENT_STARTED": 2, "SUBAGENT_FINISHED": 2, "SUBAGENT_ERROR": 0, "TOOL_CALL_RESULT": 4, "STEP_STARTED": 3 + 2*3, "STEP_FINISHED": 3 + 2*3,
	} {
		if got := strings.Count(typesOf(events), kind); got != want {
			t.Errorf("%s: got %d, want %d", kind, got, want)
		}
	}
	usage := events[len(events)-1].(*agui.RunFinished).Usage
	mustEqual(t, "number of models in the usage", len(usage), 1)
	wantEqual(t, "output tokens", *usage[0].OutputTokens, 3*2)
	fixture.wantShownConversation(events)
}

// wantShownConversation checks that a live reader has the conversation of the log.
func (f *fixture) wantShownConversation(events []agui.Event) {
	f.t.Helper()
	reader := agui.NewReducer([]agui.Message{{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("go")}}, nil)
	for _, event := range events {
		if err := reader.Apply(event); err != nil {
			f.t.Fatal(err)
		}
	}
	places := func(messages []agui.Message) []string {
		var all []string
		for _, m := range messages {
			all = append(all, fmt.Sprintf("%s %s %q %s", m.ID, m.Role, m.Content.Text(), m.SubagentRunID))
		}
		return all
	}
	if got, want := places(reader.Messages()), places(f.conversation()); !slices.Equal(got, want) {
		f.t.Errorf("messages of the reader: got\n%s\nwant those of the log\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFailedSubagent: a failed subagent is a failed call. The model gets the error and
// continues. The subagent leaves no call without a result.
func TestFailedSubagent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments  string
		err        error
		want       string
		wantErrors int
	}{
		"no task":       {`{"job":"x"}`, nil, "invalid arguments", 0},
		"model":         {`{"task":"x"}`, &llm.Error{Code: llm.CodeInvalidRequest, Message: "SECRET"}, "The agent did not finish its work: " + string(llm.CodeInvalidRequest), 1},
		"its own turn":  {`{"task":"x"}`, nil, "The agent did not finish its work: limit_turns: the run reached its limit of 1 turns.", 1},
		"its own calls": {`{"task":"many"}`, nil, "The agent did not finish its work: limit_parallel_tools", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := subagentDefinition("helper", "agent:helper")
			worker.Limits.Turns, worker.Limits.ParallelTools = 1, 1
			fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
				last := req.Messages[len(req.Messages)-1]
				switch {
				case req.Model == "lead" && last.Role == llm.RoleUser:
					return callAnswer([3]string{"1", "helper", c.arguments})
				case req.Model == "lead":
					if !last.IsError || !strings.Contains(last.Text(), c.want) || strings.Contains(last.Text(), "SECRET") {
						t.Errorf("result sent: got %+v, want %q", last, c.want)
					}
					return textAnswer("done")
				case c.err != nil:
					return nil, c.err
				case last.Text() == "many":
					return callAnswer([3]string{"1", "nothing", `{}`}, [3]string{"2", "nothing", `{}`})
				}
				return callAnswer([3]string{"1", "nothing", `{}`})
			}, []*agents.Definition{worker})
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			if got := strings.Count(typesOf(events), "SUBAGENT_ERROR"); got != c.wantErrors {
				t.Errorf("failures shown: got %d, want %d:\n%s", got, c.wantErrors, typesOf(events))
			}
			fixture.wantShownConversation(events)
			fixture.wantNoOpenCalls()
		})
	}
}

// TestSubagentDepthIsBounded: the depth of subagents is bounded. The last one is offered no
// subagents.
func TestSubagentDepthIsBounded(t *testing.T) {
	t.Parallel()
	deepest := 0
	fixture := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
			return textAnswer("back")
		}
		if deepest = n; len(req.Tools) == 0 {
			return textAnswer("at the bottom")
		}
		return callAnswer([3]string{"1", "helper", `{"task":"go on"}`})
	}, []*agents.Definition{subagentDefinition("helper", "agent:helper")})
	events, result := fixture.run("go")
	if result.Outcome != runs.OutcomeSuccess || deepest != runs.MaxDepth {
		t.Errorf("got %+v with %d agents, want %d", result, deepest, runs.MaxDepth)
	}
	if got := strings.Count(typesOf(events), "SUBAGENT_FINISHED"); got != runs.MaxDepth-1 {
		t.Errorf("subagents: got %d, want %d", got, runs.MaxDepth-1)
	}
	fixture.wantShownConversation(events)
}

// TestSubagentsAreBounded: the number of subagents in a run is bounded, at any depth.
func TestSubagentsAreBounded(t *testing.T) {
	t.Parallel()
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model == "lead" {
			return callAnswer([3]string{"1", "helper", `{"task":"a"}`}, [3]string{"2", "helper", `{"task":"b"}`}, [3]string{"3", "helper", `{"task":"c"}`})
		}
		return textAnswer("done")
	}, []*agents.Definition{subagentDefinition("helper")})
	fixture.limits.Turns = 1000
	fixture.limits.Tokens = 1 << 40
	events, result := fixture.run("go")
	got := strings.Count(typesOf(events), "SUBAGENT_FINISHED")
	wantEqual(t, "code", result.Code, runs.CodeLimitSubagents)
	wantEqual(t, "number of subagents", got, runs.MaxSubagents/3*3)
}

// TestToolPrecedesAgentOfSameName: a tool precedes a subagent of the same name, which a pattern
// may match too.
func TestToolPrecedesAgentOfSameName(t *testing.T) {
	t.Parallel()
	tool := tools.Func("helper", "helps", func(context.Context, struct {
		Task string `json:"task"`
	}) (string, error) {
		return "by the tool", nil
	})
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
			return textAnswer(last.Text())
		}
		return callAnswer([3]string{"1", "helper", `{"task":"x"}`})
	}, []*agents.Definition{subagentDefinition("helper")}, tool)
	fixture.agent.Tools = []string{"hel*", "agent:helper"}
	events, _ := fixture.run("go")
	got := fixture.conversation()
	wantEqual(t, "last message", got[len(got)-1].Content.Text(), "by the tool")
	if strings.Contains(typesOf(events), "SUBAGENT") {
		t.Errorf("events = %q, want no %q", typesOf(events), "SUBAGENT")
	}
}

// TestBranchesDoNotCountAsSubagents: the depth of subagents counts agents. A branch of a
// pipeline has a lane of its own, but hands no work on.
func TestBranchesDoNotCountAsSubagents(t *testing.T) {
	t.Parallel()
	fixture := setupSubagents(t, nil, []*agents.Definition{{Name: "b", Model: "test/b"}})
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
		got, err := fixture.acts.OfferedSubagents(t.Context(), fixture.agent, runs.Step{Child: tt.child})
		if err != nil || len(got) != tt.want {
			t.Errorf("%s: got the subagents %q, %v; want %d", name, got, err, tt.want)
		}
	}
}
