package approvals

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// TestRunHeldForClientTools: a held run stays open while the client executes its tool calls: over a
// kill, parked, and without a connected client. The results are shown, and the next turn is in the
// same run.
func TestRunHeldForClientTools(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Ask me."), kit.Marked("Thank you.")
	kit.ScriptColorPicks(t, prompt, done, "sky", "sea")
	in := kit.NewInput(prompt).Hold()
	in.Tools = kit.PickColor
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	calls := kit.CustomValue[[]string](t, f.Until(t, kit.IsCustom), "perdure.toolCalls")
	if !slices.Equal(calls, kit.ToolCallIDs(f.Events)) {
		t.Errorf("open client calls = %q, want %q", calls, kit.ToolCallIDs(f.Events))
	}
	blue, green := kit.Marked("blue"), kit.Marked("green")
	kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[1], blue), http.StatusOK, "")
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	f.Cut()
	p.Kill()
	p.Start(t)
	joined := p.NewFollower(t, in)
	joined.AttachPath = kit.EventsPath(in) + "?join=true"
	if got := kit.CustomValue[[]string](t, joined.Until(t, kit.IsCustom), "perdure.toolCalls"); !slices.Equal(got, calls) {
		t.Errorf("open client calls of a joining reader = %q, want %q", got, calls)
	}
	busy := in.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("Well?")))
	resp, err := p.Post(t.Context(), "/v1/agents/clerk/runs", busy)
	if p := kit.ReadProblem(t, resp, err); p.Code != "busy" || p.ActiveRun != in.RunID {
		t.Errorf("refusal of another run = %+v, want busy with the active run", p)
	}
	kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], green), http.StatusOK, "")
	f.Finish(t)
	joined.Finish(t)
	for _, reader := range []*kit.Follower{f, joined} {
		messages := kit.ShownMessages(t, in.Messages, reader.Events)
		if n := len(messages); n != 5 || messages[n-1].Content != done || messages[2].ToolCallID == messages[3].ToolCallID {
			t.Errorf("messages of the client = %+v, want 5 with both results and the answer", messages)
		}
	}
	if n := count(f.Events, "TOOL_CALL_RESULT"); n != 2 {
		t.Errorf("number of shown results = %d, want 2", n)
	}
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{blue, green}) && !slices.Equal(got, []string{green, blue}) {
		t.Errorf("results sent to the model = %q, want %q and %q", got, blue, green)
	}
	if a := kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], green), http.StatusOK, ""); a["repeated"] != true {
		t.Errorf("repeated result: got %v, want a repeat", a)
	}
	kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], blue), http.StatusConflict, "answered")
}

// count returns the number of events of a type.
func count(events []kit.Event, of string) (n int) {
	for _, e := range events {
		if e.Type == of {
			n++
		}
	}
	return n
}

// TestRunHeldForApprovals: a held run asks in custom events. It continues when all interrupts are
// decided or expired.
func TestRunHeldForApprovals(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7", "1+1", "8+8")
	in := kit.NewInput(prompt).Hold()
	f := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	first := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	second := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	if first.Reason != "tool_call" || first.ID == second.ID || second.ExpiresAt == "" {
		t.Errorf("interrupts = %+v and %+v, want two, the second with an expiry", first, second)
	}
	if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, first.ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK {
		t.Errorf("edit: got %d %v, want %d", status, a, http.StatusOK)
	}
	if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, first.ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK || a["repeated"] != true {
		t.Errorf("edit again: got %d %v, want %d as a repeat", status, a, http.StatusOK)
	}
	f.Finish(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if n := len(messages); n != 6 || messages[n-1].Content != done || messages[1].ToolCalls[0].Function.Arguments != `{"expression":"20+1"}` {
		t.Errorf("messages of the client = %+v, want 6 with the edited arguments and the answer", messages)
	}
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if len(got) != 3 || got[0] != "2" || got[1] != "21" || !strings.HasPrefix(got[2], "The approval of this call expired") {
		t.Errorf("results sent to the model = %q, want 2, 21 and an expired approval", got)
	}
	if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, first.ID, `{"decision":"reject"}`); status != http.StatusConflict {
		t.Errorf("reject of an edited call: got %d %v, want %d", status, a, http.StatusConflict)
	}
	if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, second.ID, `{"decision":"approve"}`); status != http.StatusGone {
		t.Errorf("approve of an expired interrupt: got %d %v, want %d", status, a, http.StatusGone)
	}
}

// TestHeldRunIsCancelled: the cancel of a held run also cancels its interrupts.
func TestHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	for name, park := range map[string]bool{"at once": false, "parked": true} {
		prompt := kit.Marked("Ask me.")
		kit.ScriptColorPicks(t, prompt, kit.Marked("Thank you."), "sky")
		in := kit.NewInput(prompt).Hold()
		in.Tools = kit.PickColor
		f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
		calls := kit.CustomValue[[]string](t, f.Until(t, kit.IsCustom), "perdure.toolCalls")
		if park {
			kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
		}
		if status := p.Cancel(t, in); status != http.StatusAccepted {
			t.Errorf("%s: cancel: got %d, want %d", name, status, http.StatusAccepted)
		}
		f.Finish(t)
		kit.WantOutcome(t, f, "cancelled")
		kit.WantResult(t, p.Endpoint, in, kit.ToolResultBody(calls[0], "blue"), http.StatusConflict, "answered")
	}
}

// TestDecisionAfterCancel: a decision that arrives when readers already see the run as cancelled is
// refused. So is one that arrives while notifications are being sent, when Temporal makes the
// worker repeat the end of the run with the decision at hand.
func TestDecisionAfterCancel(t *testing.T) {
	t.Parallel()
	prompt, no := kit.Marked("Ask me."), false
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
		{Name: "pick_color", Arguments: `{}`}, {Name: "calculate", Arguments: `{"expression":"3+4"}`},
	}}})
	for range 40 {
		in := kit.NewInput(prompt).Hold()
		in.Tools = kit.PickColor
		f := kit.Shared.FollowAgent(t, "/v1/agents/queuing/runs", in)
		question := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
		calls := kit.CustomValue[[]string](t, f.Until(t, kit.IsCustom), "perdure.toolCalls")
		if status := kit.Shared.Cancel(t, in); status != http.StatusAccepted {
			t.Fatalf("cancel: got %d, want %d", status, http.StatusAccepted)
		}
		f.Until(t, func(e kit.Event) bool { return e.Type == "RUN_FINISHED" })
		kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(calls[0], "blue"), http.StatusConflict, "answered")
		if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusNotFound {
			t.Errorf("approve: got %d %v, want %d", status, a, http.StatusNotFound)
		}
	}
}

// TestHeldRunOverSocket: a client starts a run, sends tool results and decides over one socket.
func TestHeldRunOverSocket(t *testing.T) {
	t.Parallel()
	prompt, done, yes, no := kit.Marked("Ask me."), kit.Marked("Thank you."), true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
			{Name: "pick_color", Arguments: `{}`}, {Name: "calculate", Arguments: `{"expression":"3+4"}`},
		}}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
	in := kit.NewInput(prompt).Hold()
	in.Tools = kit.PickColor
	kit.Shared.Threads.Add(in.ThreadID)
	s := kit.Shared.Dial(t)
	s.Send(t, map[string]any{"type": "run", "id": "1", "agent": "queuing", "input": in})
	var question kit.Interrupt
	var calls []string
	for question.ID == "" || calls == nil {
		f := s.Next(t)
		switch e := f.ToEvent(); e.Member("name") {
		case "perdure.approval":
			question = kit.CustomValue[kit.Interrupt](t, e, "perdure.approval")
		case "perdure.toolCalls":
			calls = kit.CustomValue[[]string](t, e, "perdure.toolCalls")
		}
	}
	s.Send(t, map[string]any{"type": "decide", "id": "2", "threadId": in.ThreadID, "approvalId": question.ID, "decision": "approve"})
	s.Send(t, map[string]any{"type": "tool_result", "id": "3", "threadId": in.ThreadID, "toolCallId": calls[0], "content": "blue"})
	acks := map[string]string{}
	var text string
	for f := s.Next(t); f.Type != "end"; f = s.Next(t) {
		switch {
		case f.Type == "error":
			t.Fatalf("frame = %+v, want no error", f)
		case f.Type == "ack":
			acks[f.ID] = string(f.Result)
		case f.ToEvent().Type == "TEXT_MESSAGE_CONTENT":
			text += f.ToEvent().Member("delta")
		}
	}
	want := map[string]string{"2": fmt.Sprintf(`{"id":%q,"decision":"approve","cursor":"`, question.ID), "3": fmt.Sprintf(`{"toolCallId":%q,"cursor":"`, calls[0])}
	if text != done || !strings.HasPrefix(acks["2"], want["2"]) || !strings.HasPrefix(acks["3"], want["3"]) {
		t.Errorf("text of the model = %q, acknowledgements = %v, want %q and %v", text, acks, done, want)
	}
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"7", "blue"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"7", "blue"})
	}
}
