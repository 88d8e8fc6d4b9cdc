package tools

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// stateful is an agent whose model and whose tool change the state, without Go.
const stateful = `name: clerk
model: scripted/clerk
tools: [find_order]
state:
  write: [{path: /notes/-, argument: note, schema: {type: string}}]
  results:
    - {tool: find_order, set: {"/orders/${args.id}": "${result.total}", /count: "${has(state.count) ? state.count + 1 : 1}"}}
---
kind: tool
name: find_order
description: Finds an order.
parameters: {type: object, required: [id], properties: {id: {type: string}}}
http: {method: GET, url: "%s/{id}"}
idempotent: true
---
kind: script
name: clerk
turns:
  - steps:
      - calls: [{tool: update_state, arguments: {note: asked}}, {tool: find_order, arguments: {id: A-1}}, {tool: find_order, arguments: {id: B-2}}]
      - say: "Done."
`

// TestToolsChangeState: the results of HTTP calls, and the model, change the state once, although
// the process dies during a call. Each change precedes the result to which it belongs.
func TestToolsChangeState(t *testing.T) {
	t.Parallel()
	begun, wait := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			close(begun)
			<-wait
		}
		_, _ = io.WriteString(w, `{"total":7}`)
	}))
	t.Cleanup(server.Close)
	p := kit.SetupWith(t, fmt.Sprintf(stateful, server.URL))
	in := kit.NewInput(kit.Marked("Where are my orders?"))
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	<-begun
	p.Kill()
	close(wait)
	p.Start(t)
	f.Finish(t)
	want := map[string]any{"notes": []any{"asked"}, "orders": map[string]any{"A-1": 7.0, "B-2": 7.0}, "count": 2.0}
	if diff := cmp.Diff(want, p.StateOf(t, in)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	for i, e := range f.Events {
		if e.Type == "TOOL_CALL_RESULT" && !strings.Contains(string(e.Data), "error") && (i == 0 || f.Events[i-1].Type != "STATE_DELTA") {
			t.Errorf("the event before %s: want the change of the state", e.Data)
		}
	}
}

// mapped is an agent whose state follows the results of an MCP tool, a subagent and a client tool.
const mapped = `name: clerk
model: scripted/clerk
tools: ["mcp:shop/greet", "agent:helper", "client:pick_*"]
state:
  results:
    - {tool: shop_greet, set: {/greeting: "${result}"}}
    - {tool: helper, set: {/help: {task: "${args.task}", answer: "${result}"}}}
    - {tool: pick_color, set: {"/colors/${args.of}": "${result.name}"}}
---
name: helper
model: scripted/helper
---
kind: mcp
name: shop
command: [%s, %s]
---
kind: script
name: helper
turns:
  - {steps: [{say: At noon.}]}
---
kind: script
name: clerk
turns:
  - steps:
      - calls: [{tool: shop_greet, arguments: {name: Ann}}, {tool: helper, arguments: {task: When}}]
      - calls: [{tool: pick_color, arguments: {of: wall}}, {tool: pick_color, arguments: {of: door}}]
      - say: "Done: {pick_color.name}"
`

// TestAllKindsOfToolsChangeState: results of an MCP tool, of a subagent and of client tools change
// the state. The results of client tools come with an input, or by a request while the run is held.
func TestAllKindsOfToolsChangeState(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	server, err := filepath.Abs(filepath.Join("node", "mcp", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	p := kit.SetupWith(t, fmt.Sprintf(mapped, node, server))
	want := map[string]any{
		"greeting": "Hello, Ann!", "help": map[string]any{"task": "When", "answer": "At noon."},
		"colors": map[string]any{"wall": "red", "door": "blue"},
	}
	for _, way := range []string{"an input", "a request"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("Paint it."))
			in.Tools = kit.PickColor
			if way == "a request" {
				in = in.Hold()
			}
			f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
			// The calls of the subagent and of the MCP tool come before those of the client.
			for range 4 {
				f.Until(t, kit.OfType("TOOL_CALL_END"))
			}
			calls := kit.ToolCallIDs(f.Events)[2:]
			results := map[string]string{calls[0]: `{"name":"red"}`, calls[1]: `{"name":"blue"}`}
			if way == "a request" {
				for _, call := range calls {
					kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(call, results[call]), http.StatusOK, "")
				}
				f.Finish(t)
			} else {
				f.Finish(t)
				in.RunID, in.State = "run-2", p.StateOf(t, in)
				for _, call := range calls {
					in.Messages = append(in.Messages, kit.Message{ID: "result-" + call, Role: "tool", ToolCallID: call, Content: results[call]})
				}
				f = p.FollowAgent(t, "/v1/agents/clerk/runs", in)
				f.Finish(t)
			}
			messages := kit.ShownMessages(t, in.Messages, f.Events)
			if last := messages[len(messages)-1]; last.Content != "Done: blue" {
				t.Errorf("the client has %+v", messages)
			}
			ids := map[string]int{}
			for _, m := range messages {
				ids[m.ToolCallID]++
			}
			if ids[calls[0]] != 1 || ids[calls[1]] != 1 {
				t.Errorf("the client has the results %v, want one for each call", ids)
			}
			if diff := cmp.Diff(want, p.StateOf(t, in)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}
