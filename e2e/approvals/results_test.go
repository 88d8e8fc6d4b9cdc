package approvals

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// The client's calls are answered one by one, outside of any input, over a crash. The thread goes
// on by itself, and whoever comes late is told what stands.
func TestToolResults(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.Keep(t)
	p.Start(t)
	prompt, done := kit.Say("Ask me."), kit.Say("Thank you.")
	kit.Picks(t, prompt, done, "sky", "sea")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	calls := kit.CallsOf(asked.Events)
	for _, body := range []any{"{}", kit.CameTo("", "x"), map[string]any{"toolCallId": 7, "content": "x"}, map[string]any{"toolCallId": calls[0], "content": 7}, map[string]any{"toolCallId": calls[0]}} {
		kit.WantResult(t, p.Endpoint, in, body, http.StatusUnprocessableEntity, "invalid_tool_result")
	}
	kit.WantResult(t, p.Endpoint, in, kit.CameTo("nonsense", "x"), http.StatusNotFound, "unknown_tool_call")
	kit.AwaitType(t, p.Endpoint, in, "thread.parked.v1")
	blue, green := kit.Say("blue"), kit.Say("green")
	if a := kit.WantResult(t, p.Endpoint, in, kit.CameTo(calls[0], blue), http.StatusOK, ""); a["repeated"] != nil {
		t.Errorf("the first result is answered with %v", a)
	}
	p.Kill()
	p.Start(t)
	again := func() {
		t.Helper()
		if a := kit.WantResult(t, p.Endpoint, in, kit.CameTo(calls[0], blue), http.StatusOK, ""); a["repeated"] != true {
			t.Errorf("the same result is answered with %v", a)
		}
		a := kit.WantResult(t, p.Endpoint, in, kit.CameTo(calls[0], green), http.StatusConflict, "answered")
		if stands, ok := a["recorded"].(map[string]any); !ok || stands["content"] != blue || stands["toolCallId"] != calls[0] {
			t.Errorf("another result is answered with %v", a)
		}
	}
	again()
	parts := []any{map[string]any{"type": "text", "text": green}}
	kit.WantResult(t, p.Endpoint, in, map[string]any{"toolCallId": calls[1], "content": parts, "error": "dim"}, http.StatusOK, "")
	f := p.FollowThread(t, in)
	f.UntilSaid(t, done)
	if got := kit.ResultsOf(t, prompt); !slices.Equal(got, []string{blue, green}) && !slices.Equal(got, []string{green, blue}) {
		t.Errorf("the model heard %q", got)
	}
	again()

	// The client answers with an input at last, and is shown what became of it.
	late := in
	late.RunID, late.Messages = "run-2", kit.Show(t, in.Messages, asked.Events)
	for _, call := range calls {
		late.Messages = append(late.Messages, kit.Message{ID: "late-" + call, Role: "tool", ToolCallID: call, Content: "late"})
	}
	events := p.RunAgent(t, "/v1/agents/clerk/runs", late)
	messages := kit.Show(t, late.Messages, events)
	if n := len(messages); n != 5 || messages[n-1].Content != done {
		t.Errorf("the client that was late has %+v", messages)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
}

// What was answered outside of an input, and is sent again in one, is said once.
func TestToolResultsWithoutAnInput(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Say("Ask me."), kit.Say("Thank you.")
	kit.Picks(t, prompt, done, "sky", "sea", "sun")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	calls, blue := kit.CallsOf(asked.Events), kit.Say("blue")
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(calls[0], blue), http.StatusOK, "")
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(calls[1], blue), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", kit.Show(t, in.Messages, asked.Events)
	for i, content := range []string{blue, kit.Say("green"), blue} {
		then.Messages = append(then.Messages, kit.Message{ID: "m-" + calls[i], Role: "tool", ToolCallID: calls[i], Content: content})
	}
	events := kit.Shared.RunAgent(t, "/v1/agents/clerk/runs", then)
	if messages := kit.Show(t, then.Messages, events); len(messages) != 6 && messages[len(messages)-1].Content != done {
		t.Errorf("the client has %+v", messages)
	}
	if got := kit.ResultsOf(t, prompt); !slices.Equal(got, []string{blue, blue, blue}) {
		t.Errorf("the model heard %q, want the results that were taken first", got)
	}
}

// Who goes on without results has given them up.
func TestToolResultsThatComeTooLate(t *testing.T) {
	t.Parallel()
	prompt := kit.Say("Ask me.")
	kit.Picks(t, prompt, kit.Say("Thank you."), "sky")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	next := in.After("run-2", "reject", kit.User(kit.Say("Never mind.")))
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, kit.Say("Fine."))
	kit.Shared.RunAgent(t, "/v1/agents/clerk/runs", next)
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(kit.CallsOf(asked.Events)[0], "blue"), http.StatusGone, "abandoned")
}

// Temporal's own tools can give a result: as a signal, whose content goes to the log. What is
// wrong, unknown or doubled changes nothing.
func TestToolResultsBySignal(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Say("Ask me."), kit.Say("Thank you.")
	kit.Picks(t, prompt, done, "sky")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	asked.Finish(t)
	call := kit.CallsOf(asked.Events)[0]
	c, err := kit.Shared.Temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const blue = "blue, as a signal has it"
	for _, r := range []map[string]any{kit.CameTo("nonsense", "x"), {"toolCallId": call, "content": 7}, kit.CameTo(call, blue), kit.CameTo(call, "green")} {
		if err := c.SignalWorkflow(t.Context(), "thread/default/"+in.ThreadID, "", "tool_result", r); err != nil {
			t.Fatal(err)
		}
	}
	f := kit.Shared.FollowThread(t, in)
	f.UntilSaid(t, done)
	if got := kit.ResultsOf(t, prompt); !slices.Equal(got, []string{blue}) {
		t.Errorf("the model heard %q", got)
	}
	if a := kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(call, blue), http.StatusOK, ""); a["repeated"] != true {
		t.Errorf("the same result over REST is answered with %v", a)
	}
}

// An agent may insist on results, or let what comes meanwhile wait for them.
func TestMissingToolResults(t *testing.T) {
	t.Parallel()
	prompt := kit.Say("Ask me.")
	kit.Picks(t, prompt, kit.Say("Thank you."), "sky", "sea")
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	asked := kit.Shared.FollowAgent(t, "/v1/agents/strict/runs", in)
	asked.Finish(t)
	calls := kit.CallsOf(asked.Events)
	next := in.After("run-2", "", kit.User(kit.Say("Never mind.")))
	next.ForwardedProps = nil
	resp, err := kit.Shared.Post(t.Context(), "/v1/agents/strict/runs", next)
	if p := kit.Refused(t, resp, err); p.Code != "missing_tool_results" || p.Status != http.StatusConflict {
		t.Errorf("to go on is refused with %+v", p)
	}
	kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(calls[0], "blue"), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", append(kit.Show(t, in.Messages, asked.Events), kit.Message{ID: "m-1", Role: "tool", ToolCallID: calls[1], Content: "green"})
	kit.Shared.RunAgent(t, "/v1/agents/strict/runs", then)
	if got := kit.ResultsOf(t, prompt); len(got) != 2 {
		t.Errorf("the model heard %q", got)
	}
}

// What comes while an agent that queues waits for its client, or for a person, has its turn
// afterwards.
func TestInputsWaitForAnswers(t *testing.T) {
	t.Parallel()
	const queuing = "/v1/agents/queuing/runs"
	for name, call := range map[string]kit.ModelCall{
		"client": {Name: "pick_color", Arguments: `{}`}, "person": {Name: "calculate", Arguments: `{"expression":"1+1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, done, yes, no := kit.Say("Ask me."), kit.Say("Thank you."), true, false
			kit.SharedModel.Answer(t,
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{call}}},
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
			in := kit.NewInput(prompt)
			in.Tools = kit.PickColor
			asked := kit.Shared.FollowAgent(t, queuing, in)
			asked.Finish(t)
			next := in.After("run-2", "", kit.User(kit.Say("And then?")))
			next.ForwardedProps = nil
			then := kit.Say("That's all.")
			kit.SharedModel.AnswerWith(t, next.Messages[1].Content, then)
			waits := kit.Shared.FollowAgent(t, queuing, next)
			if name == "client" {
				kit.WantResult(t, kit.Shared.Endpoint, in, kit.CameTo(kit.CallsOf(asked.Events)[0], "blue"), http.StatusOK, "")
			} else if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, kit.InterruptsOf(t, asked.Events)[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
				t.Errorf("approve: %d %v", status, a)
			}
			waits.Finish(t)
			messages := kit.Show(t, next.Messages, waits.Events)
			if n := len(messages); n != 6 || messages[3].Content != done || messages[n-1].Content != then {
				t.Errorf("the client has %+v", messages)
			}
		})
	}
}
