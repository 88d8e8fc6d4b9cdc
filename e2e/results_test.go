package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
)

var pickColor = []any{map[string]any{"name": "pick_color", "description": "Lets the user pick one.", "parameters": map[string]any{"type": "object"}}}

// picks lets the model ask the client for colors, and say something when it has them.
func picks(t *testing.T, prompt, then string, of ...string) {
	t.Helper()
	yes, no := true, false
	var calls []modelCall
	for _, what := range of {
		calls = append(calls, modelCall{Name: "pick_color", Arguments: `{"of":"` + what + `"}`})
	}
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: then}})
}

// callsOf returns the ids of the tool calls that a run has made.
func callsOf(events []event) []string {
	var ids []string
	for _, e := range events {
		if e.Type == "TOOL_CALL_START" {
			ids = append(ids, e.member("toolCallId"))
		}
	}
	return ids
}

// giveResult says over REST what came of a call of the client's.
func giveResult(t *testing.T, p *endpoint, threadID string, body any) (int, map[string]any) {
	t.Helper()
	resp, err := p.post(t.Context(), "/v1/threads/"+threadID+"/tool-results", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// untilSaid reads a thread to the end of the run that says something.
func (f *follower) untilSaid(t *testing.T, text string) {
	t.Helper()
	for {
		f.untilSuccess(t)
		if messages := show(t, nil, f.events); messages[len(messages)-1].Content == text {
			return
		}
	}
}

func cameTo(call, content string) map[string]any {
	return map[string]any{"toolCallId": call, "content": content}
}

// wantResult gives a result and checks how that is answered.
func wantResult(t *testing.T, p *endpoint, in input, body any, status int, code string) map[string]any {
	t.Helper()
	got, answer := giveResult(t, p, in.ThreadID, body)
	if said, _ := answer["code"].(string); got != status || said != code {
		t.Errorf("the result %v: %d %v, want %d %q", body, got, answer, status, code)
	}
	return answer
}

// The client's calls are answered one by one, outside of any input, over a crash. The thread goes
// on by itself, and whoever comes late is told what stands.
func TestToolResults(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	prompt, done := say("Ask me."), say("Thank you.")
	picks(t, prompt, done, "sky", "sea")
	in := newInput(prompt)
	in.Tools = pickColor
	asked := p.followAgent(t, "/v1/agents/clerk/runs", in)
	asked.finish(t)
	calls := callsOf(asked.events)
	for _, body := range []any{"{}", cameTo("", "x"), map[string]any{"toolCallId": 7, "content": "x"}, map[string]any{"toolCallId": calls[0], "content": 7}, map[string]any{"toolCallId": calls[0]}} {
		wantResult(t, p.endpoint, in, body, http.StatusUnprocessableEntity, "invalid_tool_result")
	}
	wantResult(t, p.endpoint, in, cameTo("nonsense", "x"), http.StatusNotFound, "unknown_tool_call")
	awaitType(t, p.endpoint, in, "thread.parked.v1")
	blue, green := say("blue"), say("green")
	if a := wantResult(t, p.endpoint, in, cameTo(calls[0], blue), http.StatusOK, ""); a["repeated"] != nil {
		t.Errorf("the first result is answered with %v", a)
	}
	p.kill()
	p.start(t)
	again := func() {
		t.Helper()
		if a := wantResult(t, p.endpoint, in, cameTo(calls[0], blue), http.StatusOK, ""); a["repeated"] != true {
			t.Errorf("the same result is answered with %v", a)
		}
		a := wantResult(t, p.endpoint, in, cameTo(calls[0], green), http.StatusConflict, "answered")
		if stands, ok := a["recorded"].(map[string]any); !ok || stands["content"] != blue || stands["toolCallId"] != calls[0] {
			t.Errorf("another result is answered with %v", a)
		}
	}
	again()
	parts := []any{map[string]any{"type": "text", "text": green}}
	wantResult(t, p.endpoint, in, map[string]any{"toolCallId": calls[1], "content": parts, "error": "dim"}, http.StatusOK, "")
	f := p.followThread(t, in)
	f.untilSaid(t, done)
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{blue, green}) && !slices.Equal(got, []string{green, blue}) {
		t.Errorf("the model heard %q", got)
	}
	again()

	// The client answers with an input at last, and is shown what became of it.
	late := in
	late.RunID, late.Messages = "run-2", show(t, in.Messages, asked.events)
	for _, call := range calls {
		late.Messages = append(late.Messages, message{ID: "late-" + call, Role: "tool", ToolCallID: call, Content: "late"})
	}
	events := p.runAgent(t, "/v1/agents/clerk/runs", late)
	messages := show(t, late.Messages, events)
	if n := len(messages); n != 5 || messages[n-1].Content != done {
		t.Errorf("the client that was late has %+v", messages)
	}
	if n := len(sharedModel.calls(t, prompt)); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
}

// What was answered outside of an input, and is sent again in one, is said once.
func TestToolResultsWithoutAnInput(t *testing.T) {
	t.Parallel()
	prompt, done := say("Ask me."), say("Thank you.")
	picks(t, prompt, done, "sky", "sea", "sun")
	in := newInput(prompt)
	in.Tools = pickColor
	asked := shared.followAgent(t, "/v1/agents/clerk/runs", in)
	asked.finish(t)
	calls, blue := callsOf(asked.events), say("blue")
	wantResult(t, shared.endpoint, in, cameTo(calls[0], blue), http.StatusOK, "")
	wantResult(t, shared.endpoint, in, cameTo(calls[1], blue), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", show(t, in.Messages, asked.events)
	for i, content := range []string{blue, say("green"), blue} {
		then.Messages = append(then.Messages, message{ID: "m-" + calls[i], Role: "tool", ToolCallID: calls[i], Content: content})
	}
	events := shared.runAgent(t, "/v1/agents/clerk/runs", then)
	if messages := show(t, then.Messages, events); len(messages) != 6 && messages[len(messages)-1].Content != done {
		t.Errorf("the client has %+v", messages)
	}
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{blue, blue, blue}) {
		t.Errorf("the model heard %q, want the results that were taken first", got)
	}
}

// Who goes on without results has given them up.
func TestToolResultsThatComeTooLate(t *testing.T) {
	t.Parallel()
	prompt := say("Ask me.")
	picks(t, prompt, say("Thank you."), "sky")
	in := newInput(prompt)
	in.Tools = pickColor
	asked := shared.followAgent(t, "/v1/agents/clerk/runs", in)
	asked.finish(t)
	next := in.after("run-2", "reject", user(say("Never mind.")))
	sharedModel.answerWith(t, next.Messages[1].Content, say("Fine."))
	shared.runAgent(t, "/v1/agents/clerk/runs", next)
	wantResult(t, shared.endpoint, in, cameTo(callsOf(asked.events)[0], "blue"), http.StatusGone, "abandoned")
}

// Temporal's own tools can give a result: as a signal, whose content goes to the log. What is
// wrong, unknown or doubled changes nothing.
func TestToolResultsBySignal(t *testing.T) {
	t.Parallel()
	prompt, done := say("Ask me."), say("Thank you.")
	picks(t, prompt, done, "sky")
	in := newInput(prompt)
	in.Tools = pickColor
	asked := shared.followAgent(t, "/v1/agents/clerk/runs", in)
	asked.finish(t)
	call := callsOf(asked.events)[0]
	c, err := shared.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const blue = "blue, as a signal has it"
	for _, r := range []map[string]any{cameTo("nonsense", "x"), {"toolCallId": call, "content": 7}, cameTo(call, blue), cameTo(call, "green")} {
		if err := c.SignalWorkflow(t.Context(), "thread/default/"+in.ThreadID, "", "tool_result", r); err != nil {
			t.Fatal(err)
		}
	}
	f := shared.followThread(t, in)
	f.untilSaid(t, done)
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{blue}) {
		t.Errorf("the model heard %q", got)
	}
	if a := wantResult(t, shared.endpoint, in, cameTo(call, blue), http.StatusOK, ""); a["repeated"] != true {
		t.Errorf("the same result over REST is answered with %v", a)
	}
}

// An agent may insist on results, or let what comes meanwhile wait for them.
func TestMissingToolResults(t *testing.T) {
	t.Parallel()
	prompt := say("Ask me.")
	picks(t, prompt, say("Thank you."), "sky", "sea")
	in := newInput(prompt)
	in.Tools = pickColor
	asked := shared.followAgent(t, "/v1/agents/strict/runs", in)
	asked.finish(t)
	calls := callsOf(asked.events)
	next := in.after("run-2", "", user(say("Never mind.")))
	next.ForwardedProps = nil
	resp, err := shared.post(t.Context(), "/v1/agents/strict/runs", next)
	if p := refused(t, resp, err); p.Code != "missing_tool_results" || p.Status != http.StatusConflict {
		t.Errorf("to go on is refused with %+v", p)
	}
	wantResult(t, shared.endpoint, in, cameTo(calls[0], "blue"), http.StatusOK, "")
	then := in
	then.RunID, then.Messages = "run-2", append(show(t, in.Messages, asked.events), message{ID: "m-1", Role: "tool", ToolCallID: calls[1], Content: "green"})
	shared.runAgent(t, "/v1/agents/strict/runs", then)
	if got := resultsOf(t, prompt); len(got) != 2 {
		t.Errorf("the model heard %q", got)
	}
}

// What comes while an agent that queues waits for its client, or for a person, has its turn
// afterwards.
func TestInputsWaitForAnswers(t *testing.T) {
	t.Parallel()
	const queuing = "/v1/agents/queuing/runs"
	for name, call := range map[string]modelCall{
		"client": {Name: "pick_color", Arguments: `{}`}, "person": {Name: "calculate", Arguments: `{"expression":"1+1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, done, yes, no := say("Ask me."), say("Thank you."), true, false
			sharedModel.answer(t,
				fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{call}}},
				fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: done}})
			in := newInput(prompt)
			in.Tools = pickColor
			asked := shared.followAgent(t, queuing, in)
			asked.finish(t)
			next := in.after("run-2", "", user(say("And then?")))
			next.ForwardedProps = nil
			then := say("That's all.")
			sharedModel.answerWith(t, next.Messages[1].Content, then)
			waits := shared.followAgent(t, queuing, next)
			if name == "client" {
				wantResult(t, shared.endpoint, in, cameTo(callsOf(asked.events)[0], "blue"), http.StatusOK, "")
			} else if status, a := decide(t, shared.endpoint, in.ThreadID, interruptsOf(t, asked.events)[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
				t.Errorf("approve: %d %v", status, a)
			}
			waits.finish(t)
			messages := show(t, next.Messages, waits.events)
			if n := len(messages); n != 6 || messages[3].Content != done || messages[n-1].Content != then {
				t.Errorf("the client has %+v", messages)
			}
		})
	}
}
