package remote

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/e2e/kit"
)

// Prompts and answers of interrupts. aimock has none.
const (
	book      = "Book a room"
	bookTwo   = "Book two rooms"
	pay       = "Pay the bill"
	oneMoment = kit.Mark + " One moment."
	booked    = kit.Mark + " Booked."
)

// confirmed is the answer of a person.
var confirmed = map[string]any{"confirmed": true}

// answerBookings makes the model call the tools that interrupt a run: booking, and payment of Mastra.
func answerBookings(t *testing.T) {
	t.Helper()
	yes, no := true, false
	call := func(id, name, arguments string) kit.ModelCall {
		return kit.ModelCall{ID: id, Name: name, Arguments: arguments}
	}
	for prompt, calls := range map[string][]kit.ModelCall{
		book:    {call("call_1", "booking", `{"room":"12"}`)},
		bookTwo: {call("call_1", "booking", `{"room":"1"}`), call("call_2", "booking", `{"room":"2"}`)},
		pay:     {call("call_1", "payment", `{"amount":5}`)},
	} {
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{Content: oneMoment, ToolCalls: calls}},
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: booked}})
	}
}

// bookingMessages returns the messages of a booking that was answered. Mastra does not tell of a call
// that suspends its run, and gives its result in the run that resumes it. The built-in agent tells of
// the call, and takes the answer for its result.
func (s npmServer) bookingMessages(question kit.Message, answer string) []kit.Message {
	if s.name == "mastra" {
		return []kit.Message{question, kit.AssistantMessage(oneMoment), kit.ToolMessage(`{"room":"12","confirmed":true}`), kit.AssistantMessage(booked)}
	}
	call := kit.ToolCallMessage(kit.ModelCall{Name: "booking", Arguments: `{"room":"12"}`})
	call.Content = oneMoment
	return []kit.Message{question, call, kit.ToolMessage(answer), kit.AssistantMessage(booked)}
}

// interruptID returns the server's ID of an interrupt of a run.
func (s npmServer) interruptID(run receivedRun, call string) string {
	if s.name == "mastra" {
		return run.Input.RunID + "::" + call
	}
	return call
}

// question returns what the server asks about a room.
func (s npmServer) question(room string) string {
	if s.name == "mastra" {
		return "Book the room " + room + "?"
	}
	return "Book the room?"
}

// interruptsOf returns the interrupts with which a run of a client has ended.
func interruptsOf(t *testing.T, d *kit.ClientProcess, run int) []kit.Interrupt {
	t.Helper()
	var events []kit.Event
	for _, e := range d.Events(run, "RUN_FINISHED") {
		events = append(events, kit.Event{Data: e})
	}
	if len(events) == 0 {
		t.Fatalf("events of run %d = %s, want RUN_FINISHED", run, d.Types(run))
	}
	return kit.InterruptsOf(t, events)
}

// wantResumed checks the decisions that the server has received with a run.
func wantResumed(t *testing.T, run receivedRun, want ...any) {
	t.Helper()
	if diff := cmp.Diff(want, run.Input.Resume, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("resume that the server received (-want +got):\n%s", diff)
	}
}

// resolved returns the decision that resolves an interrupt.
func resolved(id string) any {
	return map[string]any{"interruptId": id, "status": "resolved", "payload": confirmed}
}

// TestNPMInterrupts: stock clients get the interrupts of servers from npm and resolve them. The server
// receives the decision with its own ID, and the result of the call has the ID that the interrupt has
// named.
func TestNPMInterrupts(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	answerBookings(t)
	eachNPMServer(t, npmServers[:2], func(t *testing.T, p *kit.Perdure, s npmServer) {
		kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
			first, next, thread := kit.UserMessage(kit.Marked(book)), kit.UserMessage(kit.Marked(sayHello)), kit.NewThread()
			d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
				{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Resume: confirmed}, {RunID: "run-3", Add: []kit.Message{next}},
			}})
			ends := d.Finish(t)
			asked := interruptsOf(t, d, 0)
			if len(asked) != 1 || asked[0].Message != s.question("12") {
				t.Fatalf("interrupts = %+v, want one with %q", asked, s.question("12"))
			}
			told := s.bookingMessages(first, `{"confirmed":true}`)
			kit.WantMessages(t, told, ends[1].Messages)
			if got := ends[1].Messages[2].ToolCallID; got != asked[0].ToolCallID {
				t.Errorf("call of the result = %q, want %q as in the interrupt", got, asked[0].ToolCallID)
			}
			runs := s.received(t, first.Content)
			if len(runs) != 3 {
				t.Fatalf("runs that the server received = %d, want 3", len(runs))
			}
			wantResumed(t, runs[1], resolved(s.interruptID(runs[0], "call_1")))
			kit.WantMessages(t, append(told, next, kit.AssistantMessage(hello)), ends[2].Messages)
			wantLogged(t, p, thread, "run-3", ends[2].Messages)
			s.wantModelInput(t, next.Content, first.Content, oneMoment, booked, next.Content)
		})
	})
}

// TestNPMTwoInterrupts: Mastra asks about its calls one after the other, and the built-in agent about all
// at once.
func TestNPMTwoInterrupts(t *testing.T) {
	t.Parallel()
	answerBookings(t)
	eachNPMServer(t, npmServers[:2], func(t *testing.T, p *kit.Perdure, s npmServer) {
		kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
			question, thread := kit.UserMessage(kit.Marked(bookTwo)), kit.NewThread()
			runs := []kit.ScriptedRun{{RunID: "run-1", Add: []kit.Message{question}}, {RunID: "run-2", Resume: confirmed}}
			if s.name == "mastra" {
				runs = append(runs, kit.ScriptedRun{RunID: "run-3", Resume: confirmed})
			}
			d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: runs})
			ends := d.Finish(t)
			received := s.received(t, question.Content)
			ids := []any{resolved(s.interruptID(received[0], "call_1")), resolved(s.interruptID(received[0], "call_2"))}
			if s.name == "mastra" {
				wantResumed(t, received[1], ids[0])
				wantResumed(t, received[2], ids[1])
			} else {
				wantResumed(t, received[1], ids...)
			}
			last := ends[len(ends)-1].Messages
			if got := last[len(last)-1].Content; got != booked {
				t.Errorf("last message = %q, want %q", got, booked)
			}
			wantLogged(t, p, thread, runs[len(runs)-1].RunID, last)
		})
	})
}

// TestNPMInterruptsPerdureKilled: an interrupt of a server from npm survives a kill of perdure. People
// answer it in the inbox, or decline it; the thread takes the next run in both cases.
func TestNPMInterruptsPerdureKilled(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	answerBookings(t)
	eachNPMServer(t, npmServers[:2], func(t *testing.T, p *kit.Perdure, s npmServer) {
		path := "/v1/agents/" + s.name + "-never/runs"
		answered, declined := kit.NewInput(kit.Marked(book)), kit.NewInput(kit.Marked(book))
		asked := map[string]string{}
		for _, in := range []kit.Input{answered, declined} {
			asked[in.ThreadID] = kit.InterruptsOf(t, p.RunAgent(t, path, in))[0].ID
		}
		p.Restart(t)
		for decision, in := range map[string]kit.Input{`{"decision":"answer","content":{"confirmed":true}}`: answered, `{"decision":"reject"}`: declined} {
			if item := p.AwaitInboxItem(t, in, asked[in.ThreadID]); item["message"] != s.question("12") {
				t.Errorf("message in the inbox = %v, want %q", item["message"], s.question("12"))
			}
			if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, asked[in.ThreadID], decision); status != http.StatusOK {
				t.Fatalf("%s: %d %v, want %d", decision, status, answer, http.StatusOK)
			}
			p.FollowThread(t, in).UntilSuccess(t)
		}
		kit.WantMessages(t, s.bookingMessages(answered.Messages[0], `{"confirmed":true}`), p.MessagesOf(t, answered.ThreadID))
		runs := s.received(t, declined.Messages[0].Content)
		wantResumed(t, runs[1], map[string]any{"interruptId": s.interruptID(runs[0], "call_1"), "status": "cancelled"})
		for _, in := range []kit.Input{answered, declined} {
			p.RunAgent(t, path, in.NextRun("next", "", kit.UserMessage(kit.Marked(sayHello))))
			messages := p.MessagesOf(t, in.ThreadID)
			if last := messages[len(messages)-1]; last.Content != hello {
				t.Errorf("last message = %+v, want %q", last, hello)
			}
		}
	})
}

// TestMastraApproval: Mastra's adapter tells nobody of a tool that requires an approval. Its run ends with
// a call without a result, which is none of the client's, and the thread goes on without it.
func TestMastraApproval(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	answerBookings(t)
	eachNPMServer(t, npmServers[:1], func(t *testing.T, p *kit.Perdure, s npmServer) {
		first, next := kit.UserMessage(kit.Marked(pay)), kit.UserMessage(kit.Marked(sayHello))
		d := kit.Generations[0].Drive(t, p, kit.Script{URL: s.runs(p, "never"), Runs: []kit.ScriptedRun{
			{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{next}},
		}})
		ends := d.Finish(t)
		call := kit.ToolCallMessage(kit.ModelCall{Name: "payment", Arguments: `{"amount":5}`})
		call.Content = oneMoment
		kit.WantMessages(t, []kit.Message{first, call, next, kit.AssistantMessage(hello)}, ends[1].Messages)
		if got := callsLeft(t, d); len(got) != 0 {
			t.Errorf("calls that wait for the client = %q, want none", got)
		}
	})
}

// TestNPMInterruptsServerKilled: a server from npm is killed while people are asked. The built-in agent
// has no memory, and resumes. Mastra has lost the suspended run: the decision fails, and the thread takes
// the next run.
func TestNPMInterruptsServerKilled(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	answerBookings(t)
	eachNPMServer(t, npmServers[:2], func(t *testing.T, p *kit.Perdure, s npmServer) {
		path := "/v1/agents/" + s.name + "-never/runs"
		in := kit.NewInput(kit.Marked(book))
		asked := kit.InterruptsOf(t, p.RunAgent(t, path, in))
		s.Kill()
		s.Start(t)
		resumed := in
		resumed.RunID, resumed.Resume = "run-2", []any{resolved(asked[0].ID)}
		events := p.RunAgent(t, path, resumed)
		if s.name == "mastra" {
			if last := events[len(events)-1]; last.Type != "RUN_ERROR" || last.Member("code") != "remote_run_failed" {
				t.Errorf("end of the run = %s, want RUN_ERROR with the code remote_run_failed", last.Data)
			}
		} else {
			kit.WantMessages(t, s.bookingMessages(in.Messages[0], `{"confirmed":true}`), p.MessagesOf(t, in.ThreadID))
		}
		next := in.NextRun("run-3", "", kit.UserMessage(kit.Marked(sayHello)))
		p.RunAgent(t, path, next)
		wantResumed(t, s.received(t, next.Messages[1].Content)[0])
		messages := p.MessagesOf(t, in.ThreadID)
		if last := messages[len(messages)-1]; last.Content != hello {
			t.Errorf("last message = %+v, want %q", last, hello)
		}
	})
}
