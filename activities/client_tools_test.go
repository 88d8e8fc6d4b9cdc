package activities_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// TestClientToolCallsArePending: a model is offered the client's tools that its agent allows. Calls
// of them wait for the client.
func TestClientToolCallsArePending(t *testing.T) {
	t.Parallel()
	offered := map[string]string{}
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		for _, tool := range req.Tools {
			offered[tool.Name] = tool.Description
		}
		return callAnswer([3]string{"x", "pick", "{}"}, [3]string{"y", "add", `{"a":1,"b":2}`}, [3]string{"z", "pick", "{}"})
	}, addTool())
	fixture.agent.Tools = append(fixture.agent.Tools, "client:p*")
	for _, name := range []string{"pick", "pick", "add", "open", "p.", "p" + strings.Repeat("x", 64)} {
		fixture.input.Tools = append(fixture.input.Tools, agui.Tool{Name: name, Description: "the client's", Parameters: json.RawMessage(`{}`)})
	}
	events, _ := fixture.run("go")
	mustEqual(t, "number of offered tools", len(offered), 2)
	// The agent allows some tools of the client, so nobody is told about the others.
	wantEqual(t, "CUSTOM events", strings.Count(typesOf(events), "CUSTOM"), 0)
	wantEqual(t, "description of the client's tool", offered["pick"], "the client's")
	wantEqual(t, "description of the server's tool", offered["add"], "adds")
	r := fixture.wantThreadEqualsClient(events)
	calls := r.Entries[1].Message.ToolCalls
	want := []string{calls[0].ID, calls[2].ID}
	finished, ok := events[len(events)-1].(*agui.RunFinished)
	mustEqual(t, "last event is RUN_FINISHED", ok, true)
	wantEqual(t, "pending calls of the outcome", finished.Outcome.PendingToolCallIDs, want)
	wantEqual(t, "client calls of the snapshot", r.ClientCalls, want)
	mustEqual(t, "number of entries", len(r.Entries), 3)
	wantEqual(t, "call of the first result", r.Entries[2].Message.ToolCallID, calls[1].ID)
}

// TestClientToolsNeedPermission: an agent that does not allow client tools is offered none. The
// client and the operator learn it, once in a run.
func TestClientToolsNeedPermission(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Tools) != 1 {
			t.Errorf("offered tools: got %v, want one", req.Tools)
		}
		return callOnce("add", `{"a":1,"b":2}`)(n, req)
	}, addTool())
	fixture.input.Tools = []agui.Tool{{Name: "pick"}, {Name: "open"}}
	events, _ := fixture.run("go")
	var got []string
	for _, e := range events {
		if custom, ok := e.(*agui.Custom); ok {
			got = append(got, custom.Name+" "+string(custom.Value))
		}
	}
	wantEqual(t, "custom events", got, []string{`perdure.clientToolsIgnored {"reason":"the agent allows no tools of the client: add client:* to its tools","tools":["pick","open"]}`})
	if logged := fixture.logged.String(); strings.Count(logged, "does not allow tools of the client") != 1 {
		t.Errorf("log = %s, want one warning about tools of the client", logged)
	}
}
