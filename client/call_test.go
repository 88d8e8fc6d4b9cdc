package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// sum is a result of a run.
type sum struct {
	N int `json:"n"`
}

// TestCall: Call returns the result of the run, or an error with how the run ended instead.
func TestCall(t *testing.T) {
	t.Parallel()
	const waits = `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"int_1","reason":"tool_call"}]}}`
	for name, tt := range map[string]struct {
		last string
		want sum
		err  error
	}{
		"result":     {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success"},"result":{"n":7}}`, sum{7}, nil},
		"null":       {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success"},"metadata":{"perdure.nullResult":true}}`, sum{}, nil},
		"failed":     {`{"type":"RUN_ERROR","code":"invalid_output","message":"no"}`, sum{}, &client.RunError{ThreadID: "t1", RunID: "r1", Code: "invalid_output", Message: "no"}},
		"cancelled":  {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"cancelled"}}`, sum{}, &client.RunError{ThreadID: "t1", RunID: "r1", Code: "cancelled", Message: "the run was cancelled"}},
		"approval":   {waits, sum{}, &client.WaitingError{ThreadID: "t1", RunID: "r1", Interrupts: []agui.Interrupt{{ID: "int_1", Reason: "tool_call"}}}},
		"tool":       {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success","pendingToolCallIds":["k"]}}`, sum{}, &client.WaitingError{ThreadID: "t1", RunID: "r1", ToolCallIDs: []string{"k"}}},
		"no result":  {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1"}`, sum{}, &client.ResultError{ThreadID: "t1", RunID: "r1"}},
		"other type": {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","result":"x"}`, sum{}, &client.ResultError{ThreadID: "t1", RunID: "r1", JSON: json.RawMessage(`"x"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, streams(t, "POST /v1/agents/a/runs", fmt.Sprintf("id: c1\ndata: {\"type\":\"RUN_STARTED\",\"threadId\":\"t1\",\"runId\":\"r1\"}\n\nid: c2\ndata: %s\n\n", tt.last)))
			got, err := client.Call[sum](t.Context(), s.client(t, client.Config{}), "a", agui.RunAgentInput{ThreadID: "t1", RunID: "r1"})
			var invalid *client.ResultError
			if errors.As(err, &invalid) {
				invalid.Err = nil // its text is that of another package
			}
			if got != tt.want || !cmp.Equal(err, tt.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// TestCallReconnects: Call with a text begins a new thread, and gets the result over another connection with the same IDs.
func TestCallReconnects(t *testing.T) {
	t.Parallel()
	var input agui.RunAgentInput
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Error(err)
		}
		streams(t, "POST /v1/agents/a/runs", "id: c1\ndata: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n")(w, r)
	}, func(w http.ResponseWriter, r *http.Request) {
		streams(t, "GET /v1/threads/"+input.ThreadID+"/runs/"+input.RunID+"/events c1", "id: c2\ndata: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"result\":[1,2]}\n\n")(w, r)
	})
	got, err := client.Call[[]int](t.Context(), s.client(t, client.Config{}), "a", client.Text("go"))
	if err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("got %v, %v, want [1 2]", got, err)
	}
	if len(input.Messages) != 1 || input.Messages[0].Content.Text() != "go" || input.ProtocolVersion != agui.Version {
		t.Errorf("input = %+v, want one message and the version", input)
	}
}

// TestWaitingErrorNamesWhatIsOpen: a run may wait for interrupts, of which not all are for people, and for
// tools of the client.
func TestWaitingErrorNamesWhatIsOpen(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]client.WaitingError{
		"run r1 waits: it has 2 open interrupts and 0 tool calls of the client": {RunID: "r1", Interrupts: make([]agui.Interrupt, 2)},
		"run r1 waits: it has 1 open interrupts and 3 tool calls of the client": {RunID: "r1", Interrupts: make([]agui.Interrupt, 1), ToolCallIDs: []string{"a", "b", "c"}},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
