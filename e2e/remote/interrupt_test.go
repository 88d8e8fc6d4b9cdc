package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// asker serves an agent whose first run ends with what ask says, and whose next one tells "Done.". It
// returns its URL and the inputs that it receives.
func asker(t *testing.T, ask func(emit func(string), end func(outcome string))) (url string, inputs chan map[string]any) {
	t.Helper()
	inputs = make(chan map[string]any, 20)
	var asked sync.Map // the IDs of threads
	url = remoteAgent(t, func(in map[string]any, emit func(string)) {
		inputs <- in
		run := fmt.Sprintf(`"threadId":%q,"runId":%q`, in["threadId"], in["runId"])
		emit(`{"type":"RUN_STARTED",` + run + `}`)
		if _, isNext := asked.LoadOrStore(in["threadId"], true); !isNext {
			ask(emit, func(outcome string) { emit(`{"type":"RUN_FINISHED",` + run + outcome + `}`) })
			return
		}
		emit(`{"type":"TEXT_MESSAGE_START","messageId":"m9","role":"assistant"}`)
		emit(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m9","delta":"Done."}`)
		emit(`{"type":"TEXT_MESSAGE_END","messageId":"m9"}`)
		emit(`{"type":"RUN_FINISHED",` + run + `}`)
	})
	return url, inputs
}

// twoInterrupts ends a run with an approval of a call, and with a question.
func twoInterrupts(emit func(string), end func(string)) {
	emit(`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"pay","parentMessageId":"m1"}`)
	emit(`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"amount\":5}"}`)
	emit(`{"type":"TOOL_CALL_END","toolCallId":"c1"}`)
	end(`,"outcome":{"type":"interrupt","interrupts":[` +
		`{"id":"i1","reason":"tool_call","message":"Pay?","toolCallId":"c1","responseSchema":{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}},` +
		`{"id":"i2","reason":"input","message":"Which account?","metadata":{"place":"form"}}]}`)
}

// wantResume checks the resume of the input of a remote's second run.
func wantResume(t *testing.T, in map[string]any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(in["resume"])
	canonical, _ := json.Marshal(wanted)
	if string(got) != string(canonical) {
		t.Errorf("the remote received resume %s, want %s", got, canonical)
	}
}

// TestInterruptsOfRemote: interrupts of a remote agent are those of the run: in its outcome, in the
// inbox, with their messages and schemas. The remote receives the decisions with its own IDs, also
// after a kill.
func TestInterruptsOfRemote(t *testing.T) {
	t.Parallel()
	url, inputs := asker(t, twoInterrupts)
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\n")
	in := kit.NewInput("Pay the bill.")
	f := p.FollowAgent(t, "/v1/agents/afar/runs", in)
	f.Finish(t)
	asked := kit.InterruptsOf(t, f.Events)
	if len(asked) != 2 || asked[0].Reason != "remote:tool_call" || asked[1].Reason != "input" || asked[1].Message != "Which account?" || asked[1].ToolCallID != "" || asked[0].ToolCallID == "" {
		t.Fatalf("interrupts = %+v, want those of the remote", asked)
	}
	if item := p.AwaitInboxItem(t, in, asked[0].ID); item["message"] != "Pay?" || item["toolName"] != "pay" {
		t.Errorf("the inbox has %v, want the question about pay", item)
	}
	if item := p.AwaitInboxItem(t, in, asked[1].ID); item["message"] != "Which account?" || item["agent"] != "afar" {
		t.Errorf("the inbox has %v, want the question of afar", item)
	}
	p.Kill()
	p.Start(t)
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0].ID, `{"decision":"answer","content":{"approved":"yes"}}`); status != http.StatusUnprocessableEntity {
		t.Errorf("an answer that does not fit the schema: %d %v, want 422", status, answer)
	}
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0].ID, `{"decision":"reject","reason":"too much"}`); status/100 != 2 {
		t.Fatalf("reject: %d %v", status, answer)
	}
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, asked[1].ID, `{"decision":"answer","content":"the first"}`); status/100 != 2 {
		t.Fatalf("answer: %d %v", status, answer)
	}
	thread := p.FollowThread(t, in)
	thread.UntilSuccess(t)
	<-inputs
	second := <-inputs
	wantResume(t, second, `[{"interruptId":"i1","status":"resolved","payload":{"approved":false}},{"interruptId":"i2","status":"resolved","payload":"the first"}]`)
	if _, ok := second["forwardedProps"].(map[string]any)["command"]; ok {
		t.Error("forwardedProps has a command, want resume only")
	}
}

// TestClientResumesRemote: a client that gets the interrupts sends the decisions with its next input,
// in a run that ends and in one that is held.
func TestClientResumesRemote(t *testing.T) {
	t.Parallel()
	url, inputs := asker(t, twoInterrupts)
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\n")
	in := kit.NewInput("Pay the bill.")
	asked := kit.InterruptsOf(t, p.RunAgent(t, "/v1/agents/afar/runs", in))
	in.RunID = "run-2"
	in.Resume = []any{
		map[string]any{"interruptId": asked[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}},
		map[string]any{"interruptId": asked[1].ID, "status": "cancelled"},
	}
	p.RunAgent(t, "/v1/agents/afar/runs", in)
	<-inputs
	wantResume(t, <-inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}},{"interruptId":"i2","status":"cancelled"}]`)
	in.Resume = nil
	p.RunAgent(t, "/v1/agents/afar/runs", in.NextRun("run-3", "", kit.UserMessage("Thanks.")))
	wantResume(t, <-inputs, `null`) // the decisions are sent once

	held := kit.NewInput("Pay the bill.").Hold()
	f := p.FollowAgent(t, "/v1/agents/afar/runs", held)
	for range 2 {
		e := f.Until(t, kit.IsCustom)
		interrupt := kit.CustomValue[kit.Interrupt](t, e, e.Member("name"))
		if status, answer := kit.Decide(t, p.Endpoint, held.ThreadID, interrupt.ID, `{"decision":"answer","content":{"approved":true}}`); status/100 != 2 {
			t.Fatalf("answer: %d %v", status, answer)
		}
	}
	f.Finish(t)
	<-inputs
	if second := <-inputs; len(second["resume"].([]any)) != 2 {
		t.Errorf("the remote received resume %v, want two decisions", second["resume"])
	}
}

// TestCustomInterruptOfRemote: a custom event of LangGraph stands for an interrupt. A front end of
// LangGraph sees the event, and answers it with a command; the remote receives that command.
func TestCustomInterruptOfRemote(t *testing.T) {
	t.Parallel()
	url, inputs := asker(t, func(emit func(string), end func(string)) {
		emit(`{"type":"CUSTOM","name":"on_interrupt","value":"{\"question\":\"Go on?\"}"}`)
		end("")
	})
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\n")
	in := kit.NewInput("Begin.")
	events := p.RunAgent(t, "/v1/agents/afar/runs", in)
	if asked := kit.InterruptsOf(t, events); len(asked) != 1 {
		t.Fatalf("interrupts = %+v, want one", asked)
	}
	in.RunID = "run-2"
	in.ForwardedProps = map[string]any{"command": map[string]any{"resume": "yes", "interruptEvent": `{"question":"Go on?"}`}}
	p.RunAgent(t, "/v1/agents/afar/runs", in)
	<-inputs
	second := <-inputs
	got, _ := json.Marshal(second["forwardedProps"])
	if want := `{"command":{"interruptEvent":"{\"question\":\"Go on?\"}","resume":"yes"}}`; string(got) != want {
		t.Errorf("the remote received forwardedProps %s, want %s", got, want)
	}
}

// TestApprovalOfClientTool: approval rules of a remote agent are about calls of the client's tools. An
// approved call waits for the client, one that is rejected has that result.
func TestApprovalOfClientTool(t *testing.T) {
	t.Parallel()
	url, inputs := asker(t, func(emit func(string), end func(string)) {
		emit(`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"paint","parentMessageId":"m1"}`)
		emit(`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"color\":\"red\"}"}`)
		emit(`{"type":"TOOL_CALL_END","toolCallId":"c1"}`)
		emit(`{"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"paint","parentMessageId":"m1"}`)
		emit(`{"type":"TOOL_CALL_ARGS","toolCallId":"c2","delta":"{\"color\":\"green\"}"}`)
		emit(`{"type":"TOOL_CALL_END","toolCallId":"c2"}`)
		end("")
	})
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\napprovals:\n  - tools: [paint]\n    when: args.color == 'red'\n")
	for decision, want := range map[string]string{"approve": "painted", "reject": "The approver rejected this call. It was not made."} {
		in := kit.NewInput("Paint.")
		in.Tools = []any{map[string]any{"name": "paint", "description": "Paints.", "parameters": map[string]any{"type": "object"}}}
		f := p.FollowAgent(t, "/v1/agents/afar/runs", in)
		f.Finish(t)
		asked := kit.InterruptsOf(t, f.Events)
		calls := kit.ToolCallIDs(f.Events)
		if len(asked) != 1 || asked[0].ToolCallID != calls[0] || asked[0].Message != "May paint be called?" {
			t.Fatalf("interrupts = %+v, want the call with red", asked)
		}
		thread := p.FollowThread(t, in)
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0].ID, `{"decision":"`+decision+`"}`); status/100 != 2 {
			t.Fatalf("%s: %d %v", decision, status, answer)
		}
		kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[1], "painted"), http.StatusOK, "")
		thread.UntilSuccess(t)
		if decision == "approve" { // this run has ended with the call, which now waits for the client
			kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], "painted"), http.StatusOK, "")
			thread.UntilSuccess(t)
		}
		<-inputs
		results := map[any]any{}
		for _, m := range (<-inputs)["messages"].([]any) {
			m := m.(map[string]any)
			results[m["toolCallId"]] = m["content"]
		}
		if results["c1"] != want || results["c2"] != "painted" {
			t.Errorf("%s: the remote received results %v, want %q and painted", decision, results, want)
		}
	}
}
