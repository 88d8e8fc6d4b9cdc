package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// runWithClientCalls writes a run whose model calls a client tool. With end set, the run ends with
// that call.
func (n *node) runWithClientCalls(in runs.Input, end bool) stream.Place {
	n.t.Helper()
	p := n.begin(in, "e-"+in.Run.ID)
	a, _, err := n.log.Begin(n.ctx(), p)
	if err != nil {
		n.t.Fatal(err)
	}
	defer a.Close()
	m := agui.Message{ID: "m1", Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: "c1", Name: "pick", Arguments: "{}"}}}
	p.After, err = a.Finish(n.ctx(), &stream.Result{Messages: []agui.Message{m}},
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "pick", ParentMessageID: "m1"}, &agui.ToolCallEnd{ToolCallID: "c1"})
	if err != nil {
		n.t.Fatal(err)
	}
	if end {
		outcome := &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"c1"}}
		if _, _, err := n.log.Seal(n.ctx(), p, &agui.RunFinished{ThreadID: "t", RunID: in.Run.ID, Outcome: outcome}); err != nil {
			n.t.Fatal(err)
		}
	}
	return p
}

// TestThreadAwaitsCallsWithoutResult: a thread waits only for calls without a result, also while
// other calls of the same message are open.
func TestThreadAwaitsCallsWithoutResult(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.runWithClientCalls(in, true); return nil }
	a := node.post(inputOf("r1", "hello"))
	a.mustStatus(t, "status", http.StatusOK)
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"another call is open":       {temporal.NewApplicationError("", runs.ErrorMissingResults, runs.ActiveRun{RunID: "r1", Waiting: []string{"c2"}}), nil},
		"the call is open":           {temporal.NewApplicationError("", runs.ErrorInterrupted, runs.ActiveRun{RunID: "r1", Waiting: []string{"c1"}}), []string{"c1"}},
		"the workflow keeps nothing": {serviceerror.NewNotFound(""), []string{"c1"}},
		"Temporal is away":           {errors.New("away"), []string{"c1"}},
	} {
		node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{}, c.err }
		var sum struct {
			Waiting struct {
				ToolCallIDs []string `json:"toolCallIds"`
			} `json:"waiting"`
		}
		if node.get("/v1/threads/t", &sum); !slices.Equal(sum.Waiting.ToolCallIDs, c.want) {
			t.Errorf("%s: open calls: got %q, want %q", name, sum.Waiting.ToolCallIDs, c.want)
		}
	}
}

const resultsPath = "/v1/threads/t/tool-results"

// TestWorkflowDecidesAboutToolResults: the answer has the workflow's verdict about a result, and
// the recorded result. Its content stays in the log.
func TestWorkflowDecidesAboutToolResults(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.runWithClientCalls(in, true); return nil }
	if a := node.post(inputOf("r1", "hello")); a.status != http.StatusOK {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	var taken *runs.Decision
	node.temporal.decide = func(_ string, in runs.DecideRequest) (runs.DecideResult, error) {
		d := in.Decisions[0]
		r := runs.DecisionResult{Recorded: taken}
		switch {
		case taken == nil:
			taken = &d
		case taken.Kind == runs.DecisionAbandon || taken.Digest != d.Digest:
			r.Error = runs.ErrorDecided
		}
		return runs.DecideResult{Results: []runs.DecisionResult{r}}, nil
	}
	post := func(body string, status int, want string) {
		t.Helper()
		if a := node.do(http.MethodPost, resultsPath, body); a.status != status || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %d %s", body, a.status, a.body, status, want)
		}
	}
	blue := `{"toolCallId":"c1","content":[{"type":"text","text":"blue"}],"error":"dim"}`
	post(blue, 200, `{"toolCallId":"c1","cursor":"`)
	post(`{"content":[{"text":"blue","type":"text"}],"error":"dim","toolCallId":"c1"}`, 200, `"repeated":true`)
	post(`{"toolCallId":"c1","content":"blue"}`, 409, `"recorded":{"toolCallId":"c1","content":[{"type":"text","text":"blue"}],"error":"dim"}`)
	taken = nil
	post(`{"toolCallId":"c1","content":"`+strings.Repeat("x", 9<<10)+`"}`, 200, `"cursor"`)
	post(`{"toolCallId":"c1","content":"blue"}`, 409, `"recorded":{"toolCallId":"c1","truncated":true}`)
	taken = nil
	post(blue, 200, `{"toolCallId":"c1","cursor":"`)
	content, err := node.log.Decision(node.ctx(), taken.Proposal)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "kind of the record", content.Kind, "result")
	wantEqual(t, "channel of the record", content.Channel, "http")
	wantEqual(t, "text of the record", content.Result.Content.Text(), "blue")
	taken = &runs.Decision{CallID: "c1", Kind: runs.DecisionAbandon}
	post(blue, 410, `"abandoned"`)
	node.temporal.decide = func(string, runs.DecideRequest) (runs.DecideResult, error) {
		return runs.DecideResult{Results: []runs.DecisionResult{{Error: runs.ErrorUnknownCall}}}, nil
	}
	post(blue, 410, `"abandoned"`)
	post(`{"toolCallId":"c2","content":""}`, 404, `"unknown_tool_call"`)
}

// TestEarlyToolResult: a client may send a result before its run waits. The API repeats the
// update until the run waits.
func TestEarlyToolResult(t *testing.T) {
	t.Parallel()
	node := setup(t)
	asked := 0
	node.temporal.start = func(in runs.Input) error { node.runWithClientCalls(in, false); return nil }
	node.temporal.decide = func(string, runs.DecideRequest) (runs.DecideResult, error) {
		r := runs.DecisionResult{Error: runs.ErrorUnknownCall}
		if asked++; asked == 3 {
			r.Error = ""
		}
		return runs.DecideResult{Results: []runs.DecisionResult{r}}, nil
	}
	c := node.dial()
	body, err := json.Marshal(inputOf("r1", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	c.send(`{"type":"run","id":"1","agent":"a","input":` + string(body) + `}`)
	c.want("ack", "1")
	c.send(`{"type":"tool_result","id":"2","threadId":"t","toolCallId":"c1","content":"blue"}`)
	f := c.next()
	for f.ID != "2" {
		f = c.next()
	}
	wantEqual(t, fmt.Sprintf("after %d updates: type of the frame", asked), f.Type, "ack")
	if !strings.HasPrefix(string(f.Result), `{"toolCallId":"c1","cursor":"`) {
		t.Errorf("after %d updates: result = %q, want prefix %q", asked, string(f.Result), `{"toolCallId":"c1","cursor":"`)
	}
	wantEqual(t, "number of updates", asked, 3)
}

// TestInputWithoutResults: results in an input are decisions too, and an agent may require them.
func TestInputWithoutResults(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error {
		if in.Run.ID == "r1" {
			if in.OnMissingResult != runs.OpenAbandon || in.Hold {
				t.Errorf("input of the workflow: got %+v, want the policy abandon without hold", in)
			}
			node.runWithClientCalls(in, true)
			return nil
		}
		return alreadyStarted("e-r1")
	}
	if a := node.post(inputOf("r1", "hello")); a.status != http.StatusOK {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	var offered runs.SubmitRequest
	node.temporal.submit = func(_ string, in runs.SubmitRequest) (runs.SubmitResult, error) {
		offered = in
		return runs.SubmitResult{}, temporal.NewApplicationError("", runs.ErrorMissingResults, runs.ActiveRun{RunID: "r1", Waiting: []string{"c1"}})
	}
	next := inputOf("r2", "and now?")
	a := node.post(next)
	a.wantStatus(t, "status", http.StatusConflict)
	wantEqual(t, "problem code", a.problem.Code, "missing_tool_results")
	wantEqual(t, "number of pending tool calls", len(a.problem.PendingToolCallIDs), 1)
	wantEqual(t, "number of decisions", len(offered.Decisions), 0)
	m := agui.Message{ID: "m2", Role: agui.RoleTool, ToolCallID: "c1", Content: agui.TextContent("blue")}
	next.Messages = []agui.Message{m}
	node.post(next)
	mustEqual(t, "number of decisions of the submission", len(offered.Decisions), 1)
	wantEqual(t, "call of the first decision", offered.Decisions[0].CallID, "c1")
	mustEqual(t, "proposal of the first decision", offered.Decisions[0].Proposal, 0)
	wantEqual(t, "digest of the first decision", offered.Decisions[0].Digest, stream.ResultDigest(&m))
}
