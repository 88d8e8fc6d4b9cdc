package activities_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// TestHeldRunAnnouncesInterrupts: a held run announces its interrupts and shows their resolution.
// Readers see one run.
func TestHeldRunAnnouncesInterrupts(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`}, [3]string{"y", "pick", `{}`})
		}
		return textAnswer("Done.")
	}, addTool())
	fixture.agent.Tools = append(fixture.agent.Tools, "client:*")
	fixture.agent.Approvals = []agents.Approval{{Tools: []string{"add"}, Expires: time.Hour}}
	fixture.input.Tools = []agui.Tool{{Name: "pick"}}
	fixture.hold = true
	var waits *snapshot.Snapshot
	fixture.env.RegisterDelayedCallback(func() {
		var err error
		if waits, err = fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0); err != nil || len(waits.Interrupts) != 1 || len(waits.ClientCalls) != 1 {
			t.Errorf("open interrupts: got %+v, %v, want one interrupt and one client call", waits, err)
			fixture.env.CancelWorkflow()
			return
		}
		fixture.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: waits.ClientCalls[0], Content: json.RawMessage(`{"no":"content"}`)})
		fixture.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: waits.ClientCalls[0], Content: json.RawMessage(`"blue"`), Error: json.RawMessage(`"dim"`)})
		d := runs.Decision{
			CallID: waits.Interrupts[0].ToolCallID, Kind: runs.DecisionEdit, Digest: "d", ArgsDigest: runs.DigestArgs(`{"a":2,"b":2}`),
			Proposal: fixture.proposeDecision(&stream.Decision{Kind: "edit", Args: json.RawMessage(`{"a":2,"b":2}`)}),
		}
		fixture.env.UpdateWorkflow(runs.UpdateDecide, "u", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
		}, runs.DecideRequest{Decisions: []runs.Decision{d}})
	}, time.Minute)
	events, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if waits == nil {
		t.Fatal("snapshot of the held run = nil, want a value")
	}
	const question, asked = "CUSTOM", "STEP_FINISHED CUSTOM CUSTOM STEP_STARTED"
	types := typesOf(events)
	if !strings.Contains(types, asked) {
		t.Errorf("events = %q, want text with %q", types, asked)
	}
	wantEqual(t, "number of tool results", strings.Count(types, "TOOL_CALL_RESULT"), 2)
	wantEqual(t, "number of custom events", strings.Count(types, question), 2)
	if !strings.HasSuffix(types, "MESSAGES_SNAPSHOT RUN_FINISHED") {
		t.Errorf("events = %q, want suffix %q", types, "MESSAGES_SNAPSHOT RUN_FINISHED")
	}
	r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "number of open interrupts and client calls", len(r.Interrupts)+len(r.ClientCalls), 0)
	wantEqual(t, "number of answered calls", len(r.Answered), 1)
	wantEqual(t, "number of decided calls", len(r.Decided), 2)
	m := r.Messages()
	resultIndex := slices.IndexFunc(m, func(m agui.Message) bool { return m.ToolCallID == waits.ClientCalls[0] })
	wantEqual(t, "result of the client call", m[resultIndex].Content.Text(), "blue")
	if m[resultIndex].Error == "" {
		t.Error("error of the client call is empty, want a value")
	}
	wantEqual(t, "arguments of the first call", m[1].ToolCalls[0].Arguments, `{"a":2,"b":2}`)
	wantEqual(t, "last message", m[len(m)-1].Content.Text(), "Done.")
}
