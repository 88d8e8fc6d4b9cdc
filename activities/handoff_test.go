package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// setupHandoff returns a fixture whose agent may hand off its thread to others.
func setupHandoff(t *testing.T, s script, others []*agents.Definition, available ...tools.Tool) *fixture {
	t.Helper()
	fixture := setupSubagents(t, s, others, available...)
	fixture.agent.Tools = nil
	for _, d := range others {
		fixture.agent.Tools = append(fixture.agent.Tools, "handoff:"+d.Name)
	}
	return fixture
}

// handoffsIn returns the handoffs that clients are shown.
func handoffsIn(t *testing.T, events []agui.Event) (all []stream.Handoff) {
	t.Helper()
	for _, event := range events {
		custom, ok := event.(*agui.Custom)
		if !ok || custom.Name != stream.CustomHandoff {
			continue
		}
		var h stream.Handoff
		if err := json.Unmarshal(custom.Value, &h); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// agentOfThread returns the agent to which the thread belongs.
func (f *fixture) agentOfThread() string {
	f.t.Helper()
	snap, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return snap.Agent()
}

// TestHandoffContinuesWithTargetAgent: after a handoff the target agent answers. Its model gets the
// conversation, its own instructions and its own tools. Clients are shown the handoff, and the log
// has the thread's agent.
func TestHandoffContinuesWithTargetAgent(t *testing.T) {
	t.Parallel()
	add := tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	fixture := setupHandoff(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case req.Model == "lead":
			if len(req.Tools) != 1 || req.Tools[0].Name != "transfer_to_helper" || !strings.HasSuffix(req.Tools[0].Description, " Helps.") {
				t.Errorf("offered tools: got %+v, want the handoff tool of the helper", req.Tools)
			}
			return callAnswer([3]string{"1", "transfer_to_helper", `{"reason":"sums"}`})
		case len(req.Tools) != 1 || req.Tools[0].Name != "add":
			t.Errorf("tools offered to the target: got %+v, want add", req.Tools)
		case last.Text() == "3":
			return textAnswer("it is 3")
		}
		want := "system: You are helper.\nuser: go\nassistant:  transfer_to_helper{\"reason\":\"sums\"}\n" +
			"tool: The conversation is handed over. From here on the agent helper answers."
		if got := requestText(req); got != want {
			t.Errorf("messages sent to the target: got\n%s\nwant\n%s", got, want)
		}
		return callAnswer([3]string{"1", "add", `{"a":1,"b":2}`})
	}, []*agents.Definition{subagentDefinition("helper", "add")}, add)
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 3)
	wantEqual(t, "agent of the thread", fixture.agentOfThread(), "helper")
	if got := handoffsIn(t, events); len(got) != 1 || got[0] != (stream.Handoff{From: "a", To: "helper"}) {
		t.Errorf("shown handoffs: got %+v, want one from a to helper", got)
	}
	if got := typesOf(events); !strings.Contains(got, "TOOL_CALL_RESULT CUSTOM STEP_FINISHED STEP_STARTED") || strings.Contains(got, "SUBAGENT") {
		t.Errorf("events: got %s, want a custom event between the result and the next step, and no subagent", got)
	}
	fixture.wantShownConversation(events)
}

// TestFailedHandoff: a handoff call that fails returns the reason to the model, and the agent
// continues.
func TestFailedHandoff(t *testing.T) {
	t.Parallel()
	steps := subagentDefinition("steps")
	steps.Steps = []agents.Step{{Name: "x", Agent: &agents.AgentStep{Name: "helper"}}}
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"arguments": {"transfer_to_helper", `{"task":"x"}`, "invalid arguments"},
		"no JSON":   {"transfer_to_helper", `{`, "invalid arguments"},
		"steps":     {"transfer_to_steps", `{}`, "agents with a model of their own"},
		"unknown":   {"transfer_to_nobody", `{}`, `There is no tool "transfer_to_nobody".`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupHandoff(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				if n == 1 {
					return callAnswer([3]string{"1", c.tool, c.arguments})
				}
				if last := req.Messages[len(req.Messages)-1]; req.Model != "lead" || !last.IsError || !strings.Contains(last.Text(), c.want) {
					t.Errorf("result sent to the model %s: got %+v, want %q", req.Model, last, c.want)
				}
				return textAnswer("done")
			}, []*agents.Definition{subagentDefinition("helper"), steps})
			events, _ := fixture.run("go")
			wantEqual(t, "number of shown handoffs", len(handoffsIn(t, events)), 0)
			wantEqual(t, "agent of the thread", fixture.agentOfThread(), "a")
		})
	}
}

// TestFirstHandoffCounts: only the first of two handoffs in a turn counts.
func TestFirstHandoffCounts(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model == "lead" {
			return callAnswer([3]string{"1", "transfer_to_second", ``}, [3]string{"2", "transfer_to_first", `{}`})
		}
		results := req.Messages[len(req.Messages)-2:]
		if refused := results[1]; req.Model != "second" || !refused.IsError || !strings.Contains(refused.Text(), "only the first handoff of a turn counts") || results[0].IsError {
			t.Errorf("results sent to the model %s: got %+v, want only the first handoff accepted, and the model second", req.Model, results)
		}
		return textAnswer("done")
	}, []*agents.Definition{subagentDefinition("first"), subagentDefinition("second")})
	events, _ := fixture.run("go")
	got := handoffsIn(t, events)
	mustEqual(t, "number of shown handoffs", len(got), 1)
	wantEqual(t, "target of the shown handoff", got[0].To, "second")
	wantEqual(t, "agent of the thread", fixture.agentOfThread(), "second")
	fixture.wantShownConversation(events)
}

// TestHandoffsAreBounded: the handoffs in a run are bounded. After the last one the thread's agent
// answers.
func TestHandoffsAreBounded(t *testing.T) {
	t.Parallel()
	refused := 0
	fixture := setupHandoff(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if last := req.Messages[len(req.Messages)-1]; last.IsError {
			refused++
			return textAnswer(last.Text())
		}
		return callAnswer([3]string{"1", req.Tools[0].Name, `{}`})
	}, []*agents.Definition{subagentDefinition("helper", "handoff:a")})
	fixture.others["a"], fixture.limits.Turns = fixture.agent, 30
	fixture.agent.Limits = agents.DefaultLimits()
	events, result := fixture.run("go")
	got := handoffsIn(t, events)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of shown handoffs", len(got), runs.MaxHandoffs)
	wantEqual(t, "number of refused handoffs", refused, 1)
	wantEqual(t, "agent of the thread", fixture.agentOfThread(), "a")
	fixture.wantShownConversation(events)
}

// TestSubagentHasNoHandoffs: a subagent has no thread to hand off.
func TestSubagentHasNoHandoffs(t *testing.T) {
	t.Parallel()
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case req.Model == "lead" && last.Role == llm.RoleUser:
			return callAnswer([3]string{"1", "helper", `{"task":"x"}`})
		case req.Model == "lead":
			return textAnswer("done")
		case last.Role == llm.RoleUser && len(req.Tools) == 0:
			return callAnswer([3]string{"1", "transfer_to_other", `{}`})
		case !last.IsError || !strings.Contains(last.Text(), "not handed over"):
			t.Errorf("subagent: got the offered tools %+v and the result %+v, want a refusal", req.Tools, last)
		}
		return textAnswer("back")
	}, []*agents.Definition{subagentDefinition("helper", "handoff:other"), subagentDefinition("other")})
	events, _ := fixture.run("go")
	wantEqual(t, "number of shown handoffs", len(handoffsIn(t, events)), 0)
	wantEqual(t, "agent of the thread", fixture.agentOfThread(), "a")
}

// TestAgentStepHasNoHandoffs: an agent step has no thread to hand off.
func TestAgentStepHasNoHandoffs(t *testing.T) {
	t.Parallel()
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == llm.RoleUser && len(req.Tools) == 0 {
			return callAnswer([3]string{"1", "transfer_to_other", `{}`})
		}
		if !last.IsError || !strings.Contains(last.Text(), "not handed over") {
			t.Errorf("agent step: got the offered tools %+v and the result %+v, want a refusal", req.Tools, last)
		}
		return textAnswer("done")
	}, []*agents.Definition{subagentDefinition("helper", "handoff:other"), subagentDefinition("other")})
	fixture.agent.Tools, fixture.agent.Steps = nil, []agents.Step{{Name: "x", Agent: &agents.AgentStep{Name: "helper"}}}
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of shown handoffs", len(handoffsIn(t, events)), 0)
	wantEqual(t, "agent of the thread", fixture.agentOfThread(), "a")
}

// TestCancelledHandoff: a run that is cancelled before the call does not hand off.
func TestCancelledHandoff(t *testing.T) {
	t.Parallel()
	var f *fixture
	f = setupHandoff(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		if _, err := f.log.RequestCancel(context.Background(), run, stream.Cancel{Reason: "changed my mind"}); err != nil {
			t.Error(err)
		}
		return callAnswer([3]string{"1", "transfer_to_helper", `{}`})
	}, []*agents.Definition{subagentDefinition("helper")})
	if events, result := f.run("go"); result.Outcome != runs.OutcomeCancelled || f.calls.Load() != 1 || f.agentOfThread() != "a" {
		t.Errorf("got %+v, the agent %s and the events %s, want a cancel and the agent a after one model call", result, f.agentOfThread(), typesOf(events))
	}
}
