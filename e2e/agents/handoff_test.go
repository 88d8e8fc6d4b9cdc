package agents

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

const toFront, toDesk, toOther = "/v1/agents/front/runs", "/v1/agents/desk/runs", "/v1/agents/other/runs"

// startHandoffs starts a process with agents that hand their threads to each other.
func startHandoffs(t *testing.T, env ...string) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Env = filepath.Join("testdata", "handoff"), env
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// handoffsIn returns the handoffs in a stream.
func handoffsIn(t *testing.T, events []kit.Event) (all []string) {
	t.Helper()
	for _, e := range events {
		if kit.IsCustom(e) && e.Member("name") == "perdure.handoff" {
			h := kit.CustomValue[struct{ From, To string }](t, e, "perdure.handoff")
			all = append(all, h.From+">"+h.To)
		}
	}
	return all
}

// TestHandoff: an agent hands its thread over in the middle of a run. The other agent answers in it
// and in later runs, even if the client requests the first agent, until the thread is handed back
// or a third agent is requested.
func TestHandoff(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	c := p.NewConversation()
	for _, say := range []struct{ agent, text, wantHandoffs, wantLast string }{
		{toFront, "hello", "", "The front answers."},
		{toFront, "hand over", "front>desk", "The desk answers."},
		{toFront, "hello", "", "The desk answers."},
		{toDesk, "hello", "", "The desk answers."},
		{toFront, "come back", "desk>front", "The front is back."},
		{toFront, "hello", "", "The front answers."},
		{toFront, "hand over", "front>desk", "The desk answers."},
		{toOther, "hello", "", "The other answers."},
		{toFront, "hello", "", "The front answers."},
	} {
		events := c.Send(t, say.agent, say.text)
		if got := strings.Join(handoffsIn(t, events), " "); got != say.wantHandoffs {
			t.Errorf("%q to %s: %q is handed over, want %q", say.text, say.agent, got, say.wantHandoffs)
		}
		c.WantLast(t, say.wantLast)
	}
	d := p.NewConversation()
	d.Send(t, toFront, "hand over")
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for { // the list is eventually consistent
		var list struct {
			Items []struct{ ThreadID, Agent string }
		}
		if p.GetJSON(t, "/v1/threads?agent=desk", &list); len(list.Items) == 1 && list.Items[0].ThreadID == d.In.ThreadID {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("threads of the desk = %+v, want the handed over one", list)
		}
	}
}

// TestHandoffForStockClients: stock clients of both generations continue a thread that was handed
// over.
func TestHandoffForStockClients(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		in, next := kit.NewInput(kit.Marked("hand over")), kit.UserMessage(kit.Marked("hello"))
		d := g.Drive(t, p, kit.Script{URL: p.URL(toFront), ThreadID: in.ThreadID, Messages: in.Messages, Runs: []kit.ScriptedRun{{RunID: "r1"}, {RunID: "r2", Add: []kit.Message{next}}}})
		for i, end := range d.Finish(t) {
			if last := end.Messages[len(end.Messages)-1]; last.Content != "The desk answers." {
				t.Errorf("run %d: last message = %q, want %q", i, last.Content, "The desk answers.")
			}
		}
	})
}

// TestExampleTriage: the triage example hands customers over to the right agent, which keeps them,
// and asks for approval where it must.
func TestExampleTriage(t *testing.T) {
	t.Parallel()
	p := kit.StartExample(t, "triage")
	const triage = "/v1/agents/triage/runs"
	for _, says := range [][][2]string{
		{{"A nice shop!", "I am a script. How nice of you to say so."}, {"My bill of 40 is wrong.", "I am a script. You get 4 back."}, {"Thank you.", "I am a script. What else about your bill?"}},
		{{"My kettle is broken.", "I am a script. Have you turned it off and on again?"}, {"I have.", "I am a script. And now, does it work?"}, {"And my bill of 70?", "I am a script. You get 7 back."}},
	} {
		c := p.NewConversation()
		for _, said := range says {
			c.Send(t, triage, said[0])
			c.WantLast(t, said[1])
		}
	}
	in := kit.NewInput("My bill of 120 is wrong.")
	f := p.FollowAgent(t, triage, in)
	f.Finish(t)
	f.Approve(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if last := messages[len(messages)-1]; last.Content != "I am a script. A tenth of 120 is on its way." {
		t.Errorf("last message = %q, want that a tenth of 120 is on its way", last.Content)
	}
	p.CheckRecordedRuns(t, "triage")
}

// TestHandoffsAreBounded: two agents that hand a thread back and forth reach a limit.
func TestHandoffsAreBounded(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	c := p.NewConversation()
	if got := handoffsIn(t, c.Send(t, toFront, "to and fro")); len(got) != runs.MaxHandoffs {
		t.Errorf("%d hand-offs, want %d", len(got), runs.MaxHandoffs)
	}
	if last := c.Messages[len(c.Messages)-1]; !strings.HasPrefix(last.Content, "The front keeps it: The conversation was not handed over") {
		t.Errorf("last message = %+v, want that of the front, with the failed handoff", last)
	}
}

// TestHandoffThroughKills: the process is killed when clients see the handoff, and at moments
// around it.
func TestHandoffThroughKills(t *testing.T) {
	p := startHandoffs(t)
	for i, at := range []string{"STEP_STARTED", "TOOL_CALL_END", "TOOL_CALL_RESULT", "CUSTOM", "TEXT_MESSAGE_START"} {
		in := kit.NewInput(kit.Marked("hand over"))
		f := p.FollowAgent(t, toFront, in)
		f.Until(t, func(e kit.Event) bool { return e.Type == at })
		p.Kill()
		p.Start(t)
		f.Finish(t)
		// A snapshot retracts the killed attempt.
		messages := kit.ShownMessages(t, in.Messages, f.Events, kit.RetractWarning)
		if last := messages[len(messages)-1]; last.Content != "The desk answers." {
			t.Errorf("%d, killed at %s: last message = %q, want %q", i, at, last.Content, "The desk answers.")
		}
		if got := handoffsIn(t, f.Events); !slices.Equal(got, []string{"front>desk"}) {
			t.Errorf("%d, killed at %s: handoffs = %q, want one from front to desk", i, at, got)
		}
		again := in
		said := kit.UserMessage(kit.Marked("hello"))
		again.RunID, again.Messages = "run-2", append(again.Messages, said)
		next := p.RunAgent(t, toFront, again)
		if all := kit.ShownMessages(t, append(messages, said), next); all[len(all)-1].Content != "The desk answers." {
			t.Errorf("%d: last message of the next run = %+v, want that of the desk", i, all[len(all)-1])
		}
	}
}

// TestHandoffAndApprovals: a handoff waits for the approvals of its turn, parked and over a kill.
// Clients answer at the agent that asked. Approvals of the handoff itself, and interrupts of the
// other agent, work as well.
func TestHandoffAndApprovals(t *testing.T) {
	p := startHandoffs(t, "PERDURE_PARK_AFTER=100ms")
	for _, ask := range []struct{ text, decision, wantHandoffs, wantLast string }{
		{"add first", `{"decision":"approve"}`, "front>desk", "The desk has 2."},
		{"with care", `{"decision":"approve"}`, "front>desk", "The desk answers."},
		{"with care", `{"decision":"reject","reason":"no"}`, "", `The front keeps it: The approver rejected this call. It was not made. Reason: "no"`},
		{"with care", `{"decision":"edit","args":{}}`, "front>desk", "The desk answers."},
	} {
		in := kit.NewInput(kit.Marked(ask.text))
		f := p.FollowAgent(t, toFront, in)
		f.Finish(t)
		asked := kit.InterruptsOf(t, f.Events)
		if len(asked) != 1 || len(handoffsIn(t, f.Events)) > 0 {
			t.Fatalf("%s: interrupts = %+v, handoffs = %q, want one interrupt and no handoff", ask.text, asked, handoffsIn(t, f.Events))
		}
		kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
		p.Kill()
		p.Start(t)
		all := p.FollowThread(t, in) // before the decision: a client that joins a run later does not see its handoff
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0].ID, ask.decision); status != http.StatusOK {
			t.Fatalf("%s: got %d %v, want %d", ask.text, status, a, http.StatusOK)
		}
		all.UntilSuccess(t)
		messages := kit.ShownMessages(t, in.Messages, all.Events)
		if last := messages[len(messages)-1]; last.Content != ask.wantLast {
			t.Errorf("%s: the last word is %q, want %q", ask.text, last.Content, ask.wantLast)
		}
		if got := strings.Join(handoffsIn(t, all.Events), " "); got != ask.wantHandoffs {
			t.Errorf("%s: %q is handed over, want %q", ask.text, got, ask.wantHandoffs)
		}
	}
	c := p.NewConversation()
	c.Send(t, toFront, "hand over")
	asked := kit.InterruptsOf(t, c.Send(t, toFront, "ask me"))
	kit.AwaitWorkflowType(t, p.Endpoint, c.In, runs.TypeParked)
	c.In.RunID, c.In.Resume = "run-3", []any{map[string]any{"interruptId": asked[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	c.Apply(t, p.RunAgent(t, toFront, c.In))
	c.WantLast(t, "The desk has 10.")
}
