package activities_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// TestClientTools: a model is offered the client's tools that its agent allows. Calls of them
// wait for the client.
func TestClientTools(t *testing.T) {
	t.Parallel()
	offered := map[string]string{}
	f := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		for _, tool := range req.Tools {
			offered[tool.Name] = tool.Description
		}
		return callAnswer([3]string{"x", "pick", "{}"}, [3]string{"y", "add", `{"a":1,"b":2}`}, [3]string{"z", "pick", "{}"})
	}, addTool())
	f.agent.Tools = append(f.agent.Tools, "client:p*")
	for _, name := range []string{"pick", "pick", "add", "open", "p.", "p" + strings.Repeat("x", 64)} {
		f.input.Tools = append(f.input.Tools, agui.Tool{Name: name, Description: "the client's", Parameters: json.RawMessage(`{}`)})
	}
	events, _ := f.run("go")
	mustEqual(t, "number of offered tools", len(offered), 2)
	wantEqual(t, `offered tools: ["pick"]`, offered["pick"], "the client's")
	wantEqual(t, `offered tools: ["add"]`, offered["add"], "adds")
	r := f.wantThreadEqualsClient(events)
	calls := r.Entries[1].Message.ToolCalls
	want := []string{calls[0].ID, calls[2].ID}
	finished, ok := events[len(events)-1].(*agui.RunFinished)
	mustEqual(t, "ok", ok, true)
	wantEqual(t, "finished.Outcome.PendingToolCallIDs", finished.Outcome.PendingToolCallIDs, want)
	wantEqual(t, "r.ClientCalls", r.ClientCalls, want)
	mustEqual(t, "number of entries", len(r.Entries), 3)
	wantEqual(t, "r.Entries[2].Message.ToolCallID", r.Entries[2].Message.ToolCallID, calls[1].ID)
}

// TestClientToolsNeedPermission: an agent that does not allow client tools is offered none.
func TestClientToolsNeedPermission(t *testing.T) {
	t.Parallel()
	f := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Tools) > 0 {
			t.Errorf("offered tools: got %v, want none", req.Tools)
		}
		return textAnswer("done")
	})
	f.input.Tools = []agui.Tool{{Name: "pick"}}
	f.run("go")
}
