package remote

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// Prompts and answers of all servers. mock_agent.mjs has them too.
const (
	sayHello  = "Say hello"
	weather   = "Weather in Paris"
	paint     = "Paint it"
	remember  = "Remember Oslo"
	tellStory = "Tell a story"

	hello     = kit.Mark + " Hello from afar."
	letMeLook = kit.Mark + " Let me look."
	clearSky  = kit.Mark + " Clear in Paris."
	painted   = kit.Mark + " It is red."
	noted     = kit.Mark + " Noted."
)

// answerPrompts makes the model answer the prompts.
func answerPrompts(t *testing.T) {
	t.Helper()
	yes, no := true, false
	calls := func(prompt, text string, call kit.ModelCall) kit.Fixture {
		return kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{Content: text, ToolCalls: []kit.ModelCall{call}}}
	}
	afterCall := func(prompt, text string) kit.Fixture {
		return kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: text}}
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: sayHello}, Response: kit.Response{Content: hello}, ChunkSize: 6},
		calls(weather, letMeLook, kit.ModelCall{ID: "call_weather", Name: "weather", Arguments: `{"city":"Paris"}`}), afterCall(weather, clearSky),
		calls(paint, "", kit.ModelCall{ID: "call_paint", Name: "paint", Arguments: `{"color":"red"}`}), afterCall(paint, painted),
		afterCall(remember, noted))
	// Each agent sets its state with a tool of its own.
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: "mastra, " + remember, HasToolResult: &no}, Response: kit.Response{
			ToolCalls: []kit.ModelCall{{Name: "updateWorkingMemory", Arguments: `{"memory":{"city":"Oslo"}}`}},
		}},
		kit.Fixture{Match: kit.Match{UserMessage: "builtin, " + remember, HasToolResult: &no}, Response: kit.Response{
			ToolCalls: []kit.ModelCall{{Name: "AGUISendStateSnapshot", Arguments: `{"snapshot":{"city":"Oslo"}}`}},
		}})
}

// TestNPMServers: runs of agents on servers from npm reach stock clients of both generations, the log
// and later readers in the same form, and the servers receive their own messages again.
func TestNPMServers(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	eachNPMServer(t, npmServers, func(t *testing.T, p *kit.Perdure, s npmServer) {
		features := map[string]func(*testing.T, kit.Generation, *kit.Perdure, npmServer){
			"text": testNPMText, "server tool": testNPMServerTool, "client tool": testNPMClientTool, "abandoned call": testNPMAbandonedCall, "state": testNPMState, "cancel": testNPMCancel,
		}
		for name, test := range features {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				kit.EachGeneration(t, func(t *testing.T, g kit.Generation) { test(t, g, p, s) })
			})
		}
	})
}

// testNPMText: a thread of two runs with text.
func testNPMText(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	first, second, thread := kit.UserMessage(kit.Marked(sayHello)), kit.UserMessage(kit.Marked(sayHello)), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}})
	ends := d.Finish(t)
	kit.WantMessages(t, []kit.Message{first, kit.AssistantMessage(hello)}, ends[0].Messages)
	kit.WantMessages(t, []kit.Message{first, kit.AssistantMessage(hello), second, kit.AssistantMessage(hello)}, ends[1].Messages)
	wantLogged(t, p, thread, "run-2", ends[1].Messages)
	s.wantOwnIDs(t, s.name+"-never", second.Content, ends[0].Messages)
	s.wantModelInput(t, second.Content, first.Content, hello, second.Content)
}

// testNPMServerTool: the server executes a tool in its run.
func testNPMServerTool(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	first, second, thread := kit.UserMessage(kit.Marked(weather)), kit.UserMessage(kit.Marked(sayHello)), kit.NewThread()
	call := kit.ToolCallMessage(kit.ModelCall{Name: "weather", Arguments: `{"city":"Paris"}`})
	call.Content = letMeLook
	want := []kit.Message{first, call, kit.ToolMessage(`{"city":"Paris","sky":"clear"}`), kit.AssistantMessage(clearSky)}
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}})
	ends := d.Finish(t)
	kit.WantMessages(t, want, ends[0].Messages)
	wantLogged(t, p, thread, "run-2", ends[1].Messages)
	s.wantOwnIDs(t, s.name+"-never", second.Content, ends[0].Messages)
	s.wantModelInput(t, second.Content, first.Content, letMeLook, clearSky, second.Content)
}

// paintTool are the parameters of a client with a tool.
var paintTool = map[string]any{"tools": []any{map[string]any{
	"name": "paint", "description": "Paints the wall.",
	"parameters": map[string]any{"type": "object", "properties": map[string]any{"color": map[string]any{"type": "string"}}},
}}}

// testNPMClientTool: a run ends with a call of the client's tool, and the next run has its result.
func testNPMClientTool(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	question, thread := kit.UserMessage(kit.Marked(paint)), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{question}, Parameters: paintTool},
		{RunID: "run-2", Parameters: paintTool, Answer: map[string]string{"paint": "done"}},
	}})
	ends := d.Finish(t)
	call := kit.ToolCallMessage(kit.ModelCall{Name: "paint", Arguments: `{"color":"red"}`})
	kit.WantMessages(t, []kit.Message{question, call}, ends[0].Messages)
	kit.WantMessages(t, []kit.Message{question, call, kit.ToolMessage("done"), kit.AssistantMessage(painted)}, ends[1].Messages)
	wantLogged(t, p, thread, "run-2", ends[1].Messages)
	s.wantOwnIDs(t, s.name+"-never", question.Content, ends[1].Messages[:3])
	if got := callsLeft(t, d); !g.Legacy && (len(got) != 1 || got[0] != ends[0].Messages[1].ToolCalls[0].ID) {
		t.Errorf("pending calls at the end of the first run = %q, want the call of paint", got)
	}
}

// testNPMAbandonedCall: the client continues without the result of its tool. The server receives a
// result that says so, because the built-in agent of CopilotKit fails without one.
func testNPMAbandonedCall(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	question, next, thread := kit.UserMessage(kit.Marked(paint)), kit.UserMessage(kit.Marked(sayHello)), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{question}, Parameters: paintTool},
		{RunID: "run-2", Add: []kit.Message{next}, Parameters: paintTool},
	}})
	ends := d.Finish(t)
	if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != hello {
		t.Errorf("last message = %+v after %s, want %q", last, d.Events(1, "RUN_ERROR"), hello)
	}
	runs := s.received(t, next.Content)
	got := runs[len(runs)-1].Input.Messages
	if len(got) != 4 || got[2].Role != "tool" || got[2].ToolCallID != got[1].ToolCalls[0].ID || !strings.Contains(got[2].Content, "no result") {
		t.Errorf("messages that the server received = %+v, want a result of the call", got)
	}
	wantLogged(t, p, thread, "run-2", ends[1].Messages)
}

// callsLeft returns the calls with which the first run has ended.
func callsLeft(t *testing.T, d *kit.ClientProcess) []string {
	t.Helper()
	var end struct {
		Outcome struct {
			PendingToolCallIDs []string `json:"pendingToolCallIds"`
		} `json:"outcome"`
	}
	finished := d.Events(0, "RUN_FINISHED")
	if len(finished) != 1 {
		t.Fatalf("events of the first run = %s, want one RUN_FINISHED", d.Types(0))
	}
	if err := json.Unmarshal(finished[0], &end); err != nil {
		t.Fatal(err)
	}
	return end.Outcome.PendingToolCallIDs
}

// testNPMState: the state that a run sets is the client's and the thread's, and the server receives it
// in the next run.
func testNPMState(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	first, second, thread := kit.UserMessage(kit.Marked(s.name+", "+remember)), kit.UserMessage(kit.Marked(sayHello)), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "never"), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}})
	ends := d.Finish(t)
	if last := ends[0].Messages[len(ends[0].Messages)-1]; last.Content != noted {
		t.Errorf("last message = %q, want %q", last.Content, noted)
	}
	want := map[string]any{"city": "Oslo"}
	var shown map[string]any
	if err := json.Unmarshal(ends[0].State, &shown); err != nil {
		t.Fatal(err)
	}
	runs := s.received(t, second.Content)
	for what, got := range map[string]any{
		"client": shown, "thread": p.StateOf(t, kit.Input{ThreadID: thread}), "next request": runs[len(runs)-1].Input.State,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("state of the %s (-want +got):\n%s", what, diff)
		}
	}
	wantLogged(t, p, thread, "run-2", ends[1].Messages)
}

// testNPMCancel: a cancel in mid-stream keeps the text so far, the server sees that its client has left,
// and the thread takes the next run. CopilotKit's runtime goes on with a run whose client has left, and
// until its end it answers the next run of the thread with an empty stream, so the agent restarts.
func testNPMCancel(t *testing.T, g kit.Generation, p *kit.Perdure, s npmServer) {
	in, next := kit.NewInput(kit.Marked(tellStory)), kit.UserMessage(kit.Marked(sayHello))
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(2000)))
	d := g.Drive(t, p, kit.Script{URL: s.runs(p, "restart"), ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{
		{RunID: in.RunID, Messages: in.Messages}, {RunID: "run-2", Add: []kit.Message{next}},
	}})
	d.Until(t, "TEXT_MESSAGE_CONTENT", 3)
	cancelled := time.Now()
	if got := p.Cancel(t, in); got != http.StatusAccepted {
		t.Fatalf("cancel: %d, want %d", got, http.StatusAccepted)
	}
	for !s.received(t, in.Messages[0].Content)[0].Left {
		if time.Since(cancelled) > kit.CancelTime {
			t.Fatalf("the server has not seen the cancel in %s", kit.CancelTime)
		}
	}
	ends := d.Finish(t)
	kit.WantCancelled(t, g, d)
	if got := ends[0].Messages; len(got) != 2 || got[1].Role != "assistant" || got[1].Content == "" {
		t.Errorf("messages after the cancel = %+v, want the question and the beginning of the story", got)
	}
	kit.WantMessages(t, append(ends[0].Messages, next, kit.AssistantMessage(hello)), ends[1].Messages)
	wantLogged(t, p, in.ThreadID, "run-2", ends[1].Messages)
	s.wantOwnIDs(t, s.name+"-restart", next.Content, ends[0].Messages)
}
