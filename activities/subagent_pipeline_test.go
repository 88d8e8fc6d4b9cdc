package activities_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// TestSubagentPipeline: a pipeline can be a subagent. Its input is the task, and the answer of its
// last agent is the result.
func TestSubagentPipeline(t *testing.T) {
	t.Parallel()
	worker := parseDefinition(t, "name: helper\nmodel: test/helper\nsteps:\n"+`
  - {name: one, agent: {}, input: "one of ${input.text}"}
  - {name: both, parallel: [{name: left, agent: {}, input: "left of ${steps.one}"}, {name: right, agent: {}, input: "right of ${input.text}"}]}
  - {name: last, agent: {}, input: "${steps.left} and ${steps.right}"}`)
	fixture := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case req.Model == "lead" && last.Role == llm.RoleUser:
			return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
		case req.Model == "lead":
			if want := "re re left of re one of work and re right of work"; last.Text() != want || last.IsError {
				t.Errorf("result of the call: got %q, want %q", last.Text(), want)
			}
			return textAnswer("done")
		}
		return echoModel(n, req)
	}, []*agents.Definition{worker})
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	fixture.wantShownConversation(events)
}

// TestSubagentPipelinesAreSeparate: a pipeline that is the subagent of several calls, in parallel
// and in sequence, keeps their conversations and outputs apart.
func TestSubagentPipelinesAreSeparate(t *testing.T) {
	t.Parallel()
	worker := parseDefinition(t, "name: helper\nmodel: test/helper\nsteps:\n"+`
  - {name: one, agent: {}, input: "one of ${input.text}"}
  - {name: rows, map: {items: "[1, 2]", steps: [{name: row, agent: {}, input: "row of ${steps.one}"}]}}
  - {name: last, agent: {}, input: "${steps.rows[1].row}"}`)
	var turns atomic.Int32
	fixture := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model != "lead" {
			if len(req.Messages) != 1 {
				t.Errorf("messages sent to an agent step: got %+v, want 1", req.Messages)
			}
			return echoModel(n, req)
		}
		switch turns.Add(1) {
		case 1:
			return callAnswer([3]string{"1", "helper", `{"task":"a"}`}, [3]string{"2", "helper", `{"task":"b"}`})
		case 2:
			return callAnswer([3]string{"3", "helper", `{"task":"c"}`})
		}
		return textAnswer("done")
	}, []*agents.Definition{worker})
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	var came []string
	for _, ev := range events {
		if r, ok := ev.(*agui.ToolCallResult); ok {
			came = append(came, r.Content.Text())
		}
	}
	slices.Sort(came)
	if want := []string{"re re row of re one of a", "re re row of re one of b", "re re row of re one of c"}; !slices.Equal(came, want) {
		t.Errorf("results of the calls: got %q, want %q", came, want)
	}
	fixture.wantShownConversation(events)
}
