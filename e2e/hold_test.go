package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

// held asks to hold the run while something is waited for.
func (in input) held() input {
	in.ForwardedProps = asks(map[string]any{"hold": true})
	return in
}

// custom returns the value of a custom event.
func custom[T any](t *testing.T, e event, name string) (value T) {
	t.Helper()
	if e.Type != "CUSTOM" || e.member("name") != name {
		t.Fatalf("got %s, want CUSTOM %s", e.Data, name)
	}
	var members struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(e.Data, &members); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(members.Value, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func isCustom(e event) bool { return e.Type == "CUSTOM" }

// A run that is held stays open while its client makes calls: over a crash, parked, and for a
// client that is gone. The results are shown, and the next turn comes in the same run.
func TestHeldForTheClient(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	prompt, done := say("Ask me."), say("Thank you.")
	picks(t, prompt, done, "sky", "sea")
	in := newInput(prompt).held()
	in.Tools = pickColor
	f := p.followAgent(t, "/v1/agents/clerk/runs", in)
	calls := custom[[]string](t, f.until(t, isCustom), "perdure.toolCalls")
	if !slices.Equal(calls, callsOf(f.events)) {
		t.Errorf("the client is to make %q of %q", calls, callsOf(f.events))
	}
	blue, green := say("blue"), say("green")
	wantResult(t, p.endpoint, in, cameTo(calls[1], blue), http.StatusOK, "")
	awaitType(t, p.endpoint, in, runs.TypeParked)
	f.cut()
	p.kill()
	p.start(t)
	joined := p.reader(t, in)
	joined.view = eventsPath(in) + "?join=true"
	if got := custom[[]string](t, joined.until(t, isCustom), "perdure.toolCalls"); !slices.Equal(got, calls) {
		t.Errorf("who joins is told of %q", got)
	}
	busy := in.after("run-2", "reject", user(say("Well?")))
	resp, err := p.post(t.Context(), "/v1/agents/clerk/runs", busy)
	if p := refused(t, resp, err); p.Code != "busy" || p.ActiveRun != in.RunID {
		t.Errorf("another run is refused with %+v", p)
	}
	wantResult(t, p.endpoint, in, cameTo(calls[0], green), http.StatusOK, "")
	f.finish(t)
	joined.finish(t)
	for _, reader := range []*follower{f, joined} {
		messages := show(t, in.Messages, reader.events)
		if n := len(messages); n != 5 || messages[n-1].Content != done || messages[2].ToolCallID == messages[3].ToolCallID {
			t.Errorf("the client has %+v", messages)
		}
	}
	if n := count(f.events, "TOOL_CALL_RESULT"); n != 2 {
		t.Errorf("%d results were shown", n)
	}
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{blue, green}) && !slices.Equal(got, []string{green, blue}) {
		t.Errorf("the model heard %q", got)
	}
	if a := wantResult(t, p.endpoint, in, cameTo(calls[0], green), http.StatusOK, ""); a["repeated"] != true {
		t.Errorf("the same result is answered with %v", a)
	}
	wantResult(t, p.endpoint, in, cameTo(calls[0], blue), http.StatusConflict, "answered")
}

func count(events []event, of string) (n int) {
	for _, e := range events {
		if e.Type == of {
			n++
		}
	}
	return n
}

// A run that is held asks in custom events, and goes on when all is decided, or nobody has in time.
func TestHeldForPeople(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7", "1+1", "8+8")
	in := newInput(prompt).held()
	f := shared.followAgent(t, careful, in)
	first := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
	second := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
	if first.Reason != "tool_call" || first.ID == second.ID || second.ExpiresAt == "" {
		t.Errorf("it asks %+v and %+v", first, second)
	}
	if status, a := decide(t, shared.endpoint, in.ThreadID, first.ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK {
		t.Errorf("edit: %d %v", status, a)
	}
	if status, a := decide(t, shared.endpoint, in.ThreadID, first.ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK || a["repeated"] != true {
		t.Errorf("edit again: %d %v", status, a)
	}
	f.finish(t)
	messages := show(t, in.Messages, f.events)
	if n := len(messages); n != 6 || messages[n-1].Content != done || messages[1].ToolCalls[0].Function.Arguments != `{"expression":"20+1"}` {
		t.Errorf("the client has %+v", messages)
	}
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if len(got) != 3 || got[0] != "2" || got[1] != "21" || !strings.HasPrefix(got[2], "Nobody approved") {
		t.Errorf("the model heard %q", got)
	}
	if status, a := decide(t, shared.endpoint, in.ThreadID, first.ID, `{"decision":"reject"}`); status != http.StatusConflict {
		t.Errorf("reject what was edited: %d %v", status, a)
	}
	if status, a := decide(t, shared.endpoint, in.ThreadID, second.ID, `{"decision":"approve"}`); status != http.StatusGone {
		t.Errorf("approve what has expired: %d %v", status, a)
	}
}

// Who cancels a run that is held takes what it waits for away with it.
func TestHeldAndCancelled(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	for name, park := range map[string]bool{"at once": false, "parked": true} {
		prompt := say("Ask me.")
		picks(t, prompt, say("Thank you."), "sky")
		in := newInput(prompt).held()
		in.Tools = pickColor
		f := p.followAgent(t, "/v1/agents/clerk/runs", in)
		calls := custom[[]string](t, f.until(t, isCustom), "perdure.toolCalls")
		if park {
			awaitType(t, p.endpoint, in, runs.TypeParked)
		}
		if status := p.cancel(t, in); status != http.StatusAccepted {
			t.Errorf("%s: cancel: %d", name, status)
		}
		f.finish(t)
		wantOutcome(t, f, "cancelled")
		wantResult(t, p.endpoint, in, cameTo(calls[0], "blue"), http.StatusGone, "abandoned")
	}
}

// What comes in the moment in which readers see that a run was cancelled is too late, also while
// people are being told of the question: then Temporal has the worker come to the end once more,
// with the answer at hand.
func TestTooLateForWhatIsCancelled(t *testing.T) {
	t.Parallel()
	prompt, no := say("Ask me."), false
	sharedModel.answer(t, fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{
		{Name: "pick_color", Arguments: `{}`}, {Name: "calculate", Arguments: `{"expression":"3+4"}`},
	}}})
	for range 40 {
		in := newInput(prompt).held()
		in.Tools = pickColor
		f := shared.followAgent(t, "/v1/agents/queuing/runs", in)
		question := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
		calls := custom[[]string](t, f.until(t, isCustom), "perdure.toolCalls")
		if status := shared.cancel(t, in); status != http.StatusAccepted {
			t.Fatalf("cancel: %d", status)
		}
		f.until(t, func(e event) bool { return e.Type == "RUN_FINISHED" })
		wantResult(t, shared.endpoint, in, cameTo(calls[0], "blue"), http.StatusGone, "abandoned")
		if status, a := decide(t, shared.endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusNotFound {
			t.Errorf("approve: %d %v", status, a)
		}
	}
}

// Over one socket a client starts a run, makes its calls and decides.
func TestHeldOverASocket(t *testing.T) {
	t.Parallel()
	prompt, done, yes, no := say("Ask me."), say("Thank you."), true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{
			{Name: "pick_color", Arguments: `{}`}, {Name: "calculate", Arguments: `{"expression":"3+4"}`},
		}}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: done}})
	in := newInput(prompt).held()
	in.Tools = pickColor
	shared.threads.use(in.ThreadID)
	s := shared.dial(t)
	s.send(t, map[string]any{"type": "run", "id": "1", "agent": "queuing", "input": in})
	var question interrupt
	var calls []string
	for question.ID == "" || calls == nil {
		f := s.next(t)
		switch e := f.event(); e.member("name") {
		case "perdure.approval":
			question = custom[interrupt](t, e, "perdure.approval")
		case "perdure.toolCalls":
			calls = custom[[]string](t, e, "perdure.toolCalls")
		}
	}
	s.send(t, map[string]any{"type": "decide", "id": "2", "threadId": in.ThreadID, "approvalId": question.ID, "decision": "approve"})
	s.send(t, map[string]any{"type": "tool_result", "id": "3", "threadId": in.ThreadID, "toolCallId": calls[0], "content": "blue"})
	acks := map[string]string{}
	var text string
	for f := s.next(t); f.Type != "end"; f = s.next(t) {
		switch {
		case f.Type == "error":
			t.Fatalf("%+v", f)
		case f.Type == "ack":
			acks[f.ID] = string(f.Result)
		case f.event().Type == "TEXT_MESSAGE_CONTENT":
			text += f.event().member("delta")
		}
	}
	want := map[string]string{"2": fmt.Sprintf(`{"id":%q,"decision":"approve","cursor":"`, question.ID), "3": fmt.Sprintf(`{"toolCallId":%q,"cursor":"`, calls[0])}
	if text != done || !strings.HasPrefix(acks["2"], want["2"]) || !strings.HasPrefix(acks["3"], want["3"]) {
		t.Errorf("the model said %q, the answers are %v", text, acks)
	}
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"7", "blue"}) {
		t.Errorf("the model heard %q", got)
	}
}
