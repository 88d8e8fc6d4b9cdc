package activities_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// TestToolsOfTheClient: a model is offered the client's tools that its agent allows. Calls of them
// wait for the client.
func TestToolsOfTheClient(t *testing.T) {
	t.Parallel()
	offered := map[string]string{}
	e := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		for _, tool := range req.Tools {
			offered[tool.Name] = tool.Description
		}
		return call([3]string{"x", "pick", "{}"}, [3]string{"y", "add", `{"a":1,"b":2}`}, [3]string{"z", "pick", "{}"})
	}, add())
	e.agent.Tools = append(e.agent.Tools, "client:p*")
	for _, name := range []string{"pick", "pick", "add", "open", "p.", "p" + strings.Repeat("x", 64)} {
		e.input.Tools = append(e.input.Tools, agui.Tool{Name: name, Description: "the client's", Parameters: json.RawMessage(`{}`)})
	}
	events, _ := e.run("go")
	if len(offered) != 2 || offered["pick"] != "the client's" || offered["add"] != "adds" {
		t.Errorf("offered tools: got %v", offered)
	}
	r := e.agrees(events)
	calls := r.Entries[1].Message.ToolCalls
	want := []string{calls[0].ID, calls[2].ID}
	finished, ok := events[len(events)-1].(*agui.RunFinished)
	if !ok || !slices.Equal(finished.Outcome.PendingToolCallIDs, want) || !slices.Equal(r.ClientCalls, want) {
		t.Errorf("got the end %+v and the open client calls %v", events[len(events)-1], r.ClientCalls)
	}
	if len(r.Entries) != 3 || r.Entries[2].Message.ToolCallID != calls[1].ID {
		t.Errorf("conversation: got %s", asText(t, r.Messages()))
	}
}

// TestToolsOfTheClientAreAskedFor: an agent that does not allow client tools is offered none.
func TestToolsOfTheClientAreAskedFor(t *testing.T) {
	t.Parallel()
	e := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Tools) > 0 {
			t.Errorf("offered tools: got %v, want none", req.Tools)
		}
		return say("done")
	})
	e.input.Tools = []agui.Tool{{Name: "pick"}}
	e.run("go")
}
