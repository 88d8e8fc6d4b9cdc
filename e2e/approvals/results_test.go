package approvals

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestToolResults: results of client tool calls arrive over REST one by one, also over a kill. The
// thread continues by itself, and a late result is answered with the recorded one.
func TestToolResults(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Ask me."), kit.Marked("Thank you.")
	kit.ScriptColorPicks(t, prompt, done, "sky", "sea")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	calls := kit.ToolCallIDs(asked.Events)
	for _, body := range []any{"{}", kit.ToolResultBody("", "x"), map[string]any{"toolCallId": 7, "content": "x"}, map[string]any{"toolCallId": calls[0], "content": 7}, map[string]any{"toolCallId": calls[0]}} {
		kit.WantResult(t, p.Endpoint, in, body, http.StatusUnprocessableEntity, "invalid_tool_result")
	}
	kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody("nonsense", "x"), http.StatusNotFound, "unknown_tool_call")
	kit.AwaitWorkflowType(t, p.Endpoint, in, "thread.parked.v1")
	blue, green := kit.Marked("blue"), kit.Marked("green")
	if a := kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], blue), http.StatusOK, ""); a["repeated"] != nil {
		t.Errorf("first result: got %v, want it as new", a)
	}
	p.Kill()
	p.Start(t)
	again := func() {
		t.Helper()
		if a := kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], blue), http.StatusOK, ""); a["repeated"] != true {
			t.Errorf("repeated result: got %v, want a repeat", a)
		}
		a := kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], green), http.StatusConflict, "answered")
		if stands, ok := a["recorded"].(map[string]any); !ok || stands["content"] != blue || stands["toolCallId"] != calls[0] {
			t.Errorf("conflicting result: got %v, want the recorded one", a)
		}
	}
	again()
	parts := []any{map[string]any{"type": "text", "text": green}}
	kit.WantResult(t, p.Endpoint, in, map[string]any{"toolCallId": calls[1], "content": parts, "error": "dim"}, http.StatusOK, "")
	f := p.FollowThread(t, in)
	f.UntilText(t, done)
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{blue, green}) && !slices.Equal(got, []string{green, blue}) {
		t.Errorf("results sent to the model = %q, want %q and %q", got, blue, green)
	}
	again()

	// The client answers with an input after that, and is shown the outcome.
	late := in
	late.RunID, late.Messages = "run-2", kit.ShownMessages(t, in.Messages, asked.Events)
	for _, call := range calls {
		late.Messages = append(late.Messages, kit.Message{ID: "late-" + call, Role: "tool", ToolCallID: call, Content: "late"})
	}
	events := p.RunAgent(t, "/v1/agents/clerk/runs", late)
	messages := kit.ShownMessages(t, late.Messages, events)
	if n := len(messages); n != 5 || messages[n-1].Content != done {
		t.Errorf("messages of the late client = %+v, want 5 with the answer last", messages)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 {
		t.Errorf("number of model calls = %d, want 2", n)
	}
}

// TestToolResultsWithoutInput: a result that was sent over REST and again in an input is in the
// conversation once.
func TestToolResultsWithoutInput(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Ask me."), kit.Marked("Thank you.")
	kit.ScriptColorPicks(t, prompt, done, "sky", "sea", "sun")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	calls, blue := kit.ToolCallIDs(asked.Events), kit.Marked("blue")
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(calls[0], blue), http.StatusOK, "")
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(calls[1], blue), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", kit.ShownMessages(t, in.Messages, asked.Events)
	for i, content := range []string{blue, kit.Marked("green"), blue} {
		then.Messages = append(then.Messages, kit.Message{ID: "m-" + calls[i], Role: "tool", ToolCallID: calls[i], Content: content})
	}
	events := kit.Shared.RunAgent(t, "/v1/agents/clerk/runs", then)
	if messages := kit.ShownMessages(t, then.Messages, events); len(messages) != 6 && messages[len(messages)-1].Content != done {
		t.Errorf("messages of the client = %+v, want 6 with the answer last", messages)
	}
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{blue, blue, blue}) {
		t.Errorf("the model received %q, want the results that arrived first", got)
	}
}

// TestLateToolResults: an input without results gives the calls up.
func TestLateToolResults(t *testing.T) {
	t.Parallel()
	prompt := kit.Marked("Ask me.")
	kit.ScriptColorPicks(t, prompt, kit.Marked("Thank you."), "sky")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	next := in.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("Never mind.")))
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, kit.Marked("Fine."))
	kit.Shared.RunAgent(t, "/v1/agents/clerk/runs", next)
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(kit.ToolCallIDs(asked.Events)[0], "blue"), http.StatusGone, "abandoned")
}

// TestToolResultsBySignal: Temporal's own tools can send a result as a signal. Its content goes to
// the log. Invalid, unknown and repeated results have no effect.
func TestToolResultsBySignal(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Ask me."), kit.Marked("Thank you.")
	kit.ScriptColorPicks(t, prompt, done, "sky")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	call := kit.ToolCallIDs(asked.Events)[0]
	c, err := kit.Shared.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const blue = "blue, as a signal has it"
	for _, r := range []map[string]any{kit.ToolResultBody("nonsense", "x"), {"toolCallId": call, "content": 7}, kit.ToolResultBody(call, blue), kit.ToolResultBody(call, "green")} {
		if err := c.SignalWorkflow(t.Context(), "thread/default/"+in.ThreadID, "", "tool_result", r); err != nil {
			t.Fatal(err)
		}
	}
	f := kit.Shared.FollowThread(t, in)
	f.UntilText(t, done)
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{blue}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{blue})
	}
	if a := kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(call, blue), http.StatusOK, ""); a["repeated"] != true {
		t.Errorf("repeated result over REST: got %v, want a repeat", a)
	}
}

// TestMissingToolResults: an agent may require results, or queue inputs until it has them.
func TestMissingToolResults(t *testing.T) {
	t.Parallel()
	prompt := kit.Marked("Ask me.")
	kit.ScriptColorPicks(t, prompt, kit.Marked("Thank you."), "sky", "sea")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/strict/runs", in)
	asked.Finish(t)
	calls := kit.ToolCallIDs(asked.Events)
	next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("Never mind.")))
	next.ForwardedProps = nil
	resp, err := kit.Shared.Post(t.Context(), "/v1/agents/strict/runs", next)
	if p := kit.ReadProblem(t, resp, err); p.Code != "missing_tool_results" || p.Status != http.StatusConflict {
		t.Errorf("refusal of a new input = %+v, want missing_tool_results", p)
	}
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(calls[0], "blue"), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", append(kit.ShownMessages(t, in.Messages, asked.Events), kit.Message{ID: "m-1", Role: "tool", ToolCallID: calls[1], Content: "green"})
	kit.Shared.RunAgent(t, "/v1/agents/strict/runs", then)
	if got := kit.ToolResultsSent(t, prompt); len(got) != 2 {
		t.Errorf("results sent to the model = %q, want 2", got)
	}
}

// TestInputsWaitForAnswers: inputs to a queueing agent that waits for its client or an approver run
// afterwards.
func TestInputsWaitForAnswers(t *testing.T) {
	t.Parallel()
	const queuing = "/v1/agents/queuing/runs"
	for name, call := range map[string]kit.ModelCall{
		"client": {Name: "pick_color", Arguments: `{}`}, "person": {Name: "calculate", Arguments: `{"expression":"1+1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, done, yes, no := kit.Marked("Ask me."), kit.Marked("Thank you."), true, false
			kit.SharedModel.Answer(t,
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{call}}},
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
			in := kit.NewInput(prompt)
			in.Tools = kit.PickColor
			asked := kit.Shared.FollowAgent(t, queuing, in)
			asked.Finish(t)
			next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("And then?")))
			next.ForwardedProps = nil
			then := kit.Marked("That's all.")
			kit.SharedModel.AnswerWith(t, next.Messages[1].Content, then)
			waits := kit.Shared.FollowAgent(t, queuing, next)
			if name == "client" {
				kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(kit.ToolCallIDs(asked.Events)[0], "blue"), http.StatusOK, "")
			} else if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, kit.InterruptsOf(t, asked.Events)[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
				t.Errorf("approve: got %d %v, want %d", status, a, http.StatusOK)
			}
			waits.Finish(t)
			messages := kit.ShownMessages(t, next.Messages, waits.Events)
			if n := len(messages); n != 6 || messages[3].Content != done || messages[n-1].Content != then {
				t.Errorf("messages of the client = %+v, want 6 with both answers", messages)
			}
		})
	}
}
