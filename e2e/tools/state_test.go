package tools

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// TestToolsChangeState: the results of HTTP calls, and the model, change the state once, although the
// process dies during a call. Each change precedes the result to which it belongs.
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
