package remote

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/e2e/kit"
)

// TestLangGraph: the runs of a graph reach stock clients of both generations, the log and later readers in
// the same form, and the graph's checkpoint has the same messages.
func TestLangGraph(t *testing.T) {
	t.Parallel()
	s := startLangGraph(t)
	p := s.setup(t)
	for name, test := range map[string]func(*testing.T, kit.Generation, *kit.Perdure, langGraph){
		"text": testGraphText, "tools": testGraphTools, "client tools": testGraphClientTools, "state": testGraphState,
		"cancel": testGraphCancel, "fork": testGraphFork,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) { test(t, g, p, s) })
		})
	}
}

// testGraphText: two runs of one thread. Clients have the whole conversation without the graph's snapshots.
func testGraphText(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	first, second, thread := kit.UserMessage(kit.Marked("echo Hello there")), kit.UserMessage(kit.Marked("echo And again")), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}})
	ends := d.Finish(t)
	want := []kit.Message{first, kit.AssistantMessage("You said: Hello there"), second, kit.AssistantMessage("You said: And again")}
	kit.WantMessages(t, want[:2], ends[0].Messages)
	kit.WantMessages(t, want, ends[1].Messages)
	for run := range ends {
		if n := len(d.Events(run, "MESSAGES_SNAPSHOT")); n > 0 {
			t.Errorf("snapshots of the messages in run %d = %d, want none", run, n)
		}
	}
	wantConversation(t, p, g, thread, "run-2", ends[1].Messages)
	s.wantCheckpoint(t, p, chat, thread)
}

// testGraphTools: the graph calls two tools at once, which it streams with wrong arguments and IDs. In the end
// the client has what the graph has.
func testGraphTools(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	first, second, thread := kit.UserMessage(kit.Marked("weather in Oslo and Rome")), kit.UserMessage(kit.Marked("echo Thanks")), kit.NewThread()
	d := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}})
	ends := d.Finish(t)
	calls := kit.ToolCallMessage(kit.ModelCall{Name: "weather", Arguments: `{"city":"Oslo"}`}, kit.ModelCall{Name: "weather", Arguments: `{"city":"Rome"}`})
	calls.Content = "Let me look. "
	want := []kit.Message{first, calls, kit.ToolMessage("sunny in Oslo"), kit.ToolMessage("sunny in Rome"), kit.AssistantMessage("So: sunny in Oslo, sunny in Rome")}
	if diff := cmp.Diff(want, kit.ByCall(slices.Clone(ends[0].Messages)), kit.IgnoreIDs, withoutEmptyCalls); diff != "" {
		t.Errorf("messages of the client (-want +got):\n%s", diff)
	}
	wantConversation(t, p, g, thread, "run-2", ends[1].Messages)
	s.wantCheckpoint(t, p, chat, thread)
}

// testGraphClientTools: the graph ends its run with two calls of the client's tools, and the next run has their
// results.
func testGraphClientTools(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	question, thread := kit.UserMessage(kit.Marked("use paint and draw")), kit.NewThread()
	var tools []any
	for _, name := range []string{"paint", "draw"} {
		tools = append(tools, map[string]any{"name": name, "description": "Shows it.", "parameters": map[string]any{"type": "object"}})
	}
	parameters := map[string]any{"tools": tools}
	d := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: thread, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{question}, Parameters: parameters},
		{RunID: "run-2", Parameters: parameters, Answer: map[string]string{"paint": "painted", "draw": "drawn"}},
	}})
	ends := d.Finish(t)
	calls := kit.ToolCallMessage(kit.ModelCall{Name: "paint", Arguments: `{"number":0}`}, kit.ModelCall{Name: "draw", Arguments: `{"number":1}`})
	kit.WantMessages(t, []kit.Message{question, calls}, ends[0].Messages)
	kit.WantMessages(t, []kit.Message{question, calls, kit.ToolMessage("painted"), kit.ToolMessage("drawn"), kit.AssistantMessage("So: painted, drawn")}, ends[1].Messages)
	wantConversation(t, p, g, thread, "run-2", ends[1].Messages)
	s.wantCheckpoint(t, p, chat, thread)
	var end struct {
		Outcome struct {
			PendingToolCallIDs []string `json:"pendingToolCallIds"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(d.Events(0, "RUN_FINISHED")[0], &end); err != nil {
		t.Fatal(err)
	}
	asked := ends[0].Messages[1].ToolCalls
	if pending := end.Outcome.PendingToolCallIDs; !g.Legacy && !slices.Equal(pending, []string{asked[0].ID, asked[1].ID}) {
		t.Errorf("pending calls = %q, want both calls", pending)
	}
}

// testGraphState: the state of the graph becomes the thread's, and what the client changes of it becomes the
// graph's in the next run.
func testGraphState(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	first, thread := kit.UserMessage(kit.Marked("note milk")), kit.NewThread()
	ends := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: thread, Runs: []kit.ScriptedRun{{RunID: "run-1", Add: []kit.Message{first}}}}).Finish(t)
	var shown map[string]any
	if err := json.Unmarshal(ends[0].State, &shown); err != nil {
		t.Fatal(err)
	}
	for what, state := range map[string]map[string]any{"client": shown, "thread": p.StateOf(t, kit.Input{ThreadID: thread})} {
		if diff := cmp.Diff([]any{"milk"}, state["notes"]); diff != "" {
			t.Errorf("notes in the state of the %s (-want +got):\n%s", what, diff)
		}
	}
	shown["notes"] = []any{"milk", "bread"}
	in := kit.NewInput(kit.Marked("recall"))
	in.ThreadID, in.RunID, in.State, in.Messages = thread, "run-2", shown, append(ends[0].Messages, in.Messages...)
	if g.Legacy {
		in.ProtocolVersion = ""
	}
	messages := kit.ShownMessages(t, in.Messages, p.RunAgent(t, "/v1/agents/"+chat+"/runs", in))
	if last := messages[len(messages)-1]; last.Content != "Notes: milk, bread" {
		t.Errorf("last message = %q, want the notes of the client", last.Content)
	}
	if diff := cmp.Diff([]any{"milk", "bread"}, p.StateOf(t, in)["notes"]); diff != "" {
		t.Errorf("notes in the state of the thread (-want +got):\n%s", diff)
	}
	s.wantCheckpoint(t, p, chat, thread)
}

// testGraphCancel: a cancel in mid-stream cancels the run of the graph and keeps the text so far. The thread
// takes the next run, with that text in the checkpoint.
func testGraphCancel(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	in, next := kit.NewInput(kit.Marked("slowly count to 1000")), kit.UserMessage(kit.Marked("echo Go on"))
	d := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
	d.Until(t, "TEXT_MESSAGE_CONTENT", 3)
	cancelled := time.Now()
	if got := p.Cancel(t, in); got != http.StatusAccepted {
		t.Fatalf("cancel: %d, want %d", got, http.StatusAccepted)
	}
	ends := d.Finish(t)
	s.awaitIdle(t, chat, in.ThreadID)
	if took := time.Since(cancelled); took > kit.CancelTime {
		t.Errorf("time from the cancel to the end of the graph's run = %s, want at most %s", took, kit.CancelTime)
	}
	kit.WantCancelled(t, g, d)
	kit.WantPartial(t, in, ends[0].Messages, counted(1000))
	wantConversation(t, p, g, in.ThreadID, in.RunID, ends[0].Messages)
	d = g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: in.ThreadID, Messages: ends[0].Messages, Runs: []kit.ScriptedRun{{RunID: "run-2", Add: []kit.Message{next}}}})
	after := d.Finish(t)[0].Messages
	kit.WantMessages(t, append(slices.Clone(ends[0].Messages), next, kit.AssistantMessage("You said: Go on")), after)
	wantConversation(t, p, g, in.ThreadID, "run-2", after)
	s.wantCheckpoint(t, p, chat, in.ThreadID)
}

// testGraphFork: a fork has a thread of LangGraph of its own, with the messages before the fork.
func testGraphFork(t *testing.T, g kit.Generation, p *kit.Perdure, s langGraph) {
	first, second, third := kit.UserMessage(kit.Marked("weather in Oslo")), kit.UserMessage(kit.Marked("echo Two")), kit.UserMessage(kit.Marked("echo Three"))
	parent, fork := kit.NewThread(), kit.NewThread()
	ends := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: parent, Runs: []kit.ScriptedRun{
		{RunID: "run-1", Add: []kit.Message{first}}, {RunID: "run-2", Add: []kit.Message{second}},
	}}).Finish(t)
	props := map[string]any{"forwardedProps": kit.PerdureProps(map[string]any{"parentRunId": "run-1", "parentThreadId": parent})}
	forked := g.Drive(t, p, kit.Script{URL: runsOf(p, chat), ThreadID: fork, Messages: ends[0].Messages, Runs: []kit.ScriptedRun{
		{RunID: "run-3", Add: []kit.Message{third}, Parameters: props},
	}}).Finish(t)
	want := append(slices.Clone(ends[0].Messages), third, kit.AssistantMessage("You said: Three"))
	if diff := cmp.Diff(want, forked[0].Messages, kit.IgnoreIDs, withoutEmptyCalls); diff != "" {
		t.Errorf("messages of the fork (-want +got):\n%s", diff)
	}
	if remote.ThreadID("default", chat, parent) == remote.ThreadID("default", chat, fork) {
		t.Error("the fork has LangGraph's thread of its parent, want one of its own")
	}
	wantConversation(t, p, g, parent, "run-2", ends[1].Messages)
	wantConversation(t, p, g, fork, "run-3", forked[0].Messages)
	s.wantCheckpoint(t, p, chat, parent)
	s.wantCheckpoint(t, p, chat, fork)
}
