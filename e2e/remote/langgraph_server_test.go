package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/e2e/kit"
)

// langGraph is a LangGraph.js server, and AG-UI's agent for LangGraph in front of it. The graphs are in
// node/langgraph/graph.mjs. Its threads are in memory: Kill loses them.
type langGraph struct{ *kit.AgentServer }

// startLangGraph starts a LangGraph server for one test. Its arguments may have the URL of an effectServer.
func startLangGraph(t *testing.T, args ...string) langGraph {
	t.Helper()
	if err := kit.Install(filepath.Join("node", "langgraph")); err != nil {
		t.Fatal(err)
	}
	return langGraph{kit.StartAgentServer(t, filepath.Join("langgraph", "agent.mjs"), "langgraph", args...)}
}

// The agents of setup. Both are the graph chat.
const (
	chat     = "chat"     // with retry: never
	restarts = "restarts" // with retry: restart
)

// setup starts a perdure with the agents.
func (s langGraph) setup(t *testing.T) *kit.Perdure {
	t.Helper()
	url := "http://" + s.Address + "/chat"
	return kit.SetupWith(t, "name: "+chat+"\nremote: {url: '"+url+"'}\n---\nname: "+restarts+"\nremote: {url: '"+url+"', retry: restart}\n")
}

// runsOf returns the URL that starts runs of an agent.
func runsOf(p *kit.Perdure, agent string) string { return p.URL("/v1/agents/" + agent + "/runs") }

// graphMessage is a message of the graph, in the form of its framework.
type graphMessage struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID   string          `json:"id"`
		Args json.RawMessage `json:"args"`
	} `json:"tool_calls"`
}

// get reads the thread that LangGraph has for a thread of perdure, or a part of it.
func (s langGraph) get(t *testing.T, agent, thread, what string, into any) {
	t.Helper()
	url := "http://" + s.Address + "/threads/" + remote.ThreadID("default", agent, thread) + what
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got %d, %v, want %d", url, resp.StatusCode, err, http.StatusOK)
	}
}

// messageReader is an address of Perdure's API.
type messageReader interface {
	MessagesOf(t *testing.T, thread string) []kit.Message
}

// wantCheckpoint checks that LangGraph's checkpoint of a thread has the same messages as perdure's log, with
// the IDs that LangGraph has given to its own, and none twice. Results are compared by their calls: LangGraph
// streams them with random IDs, which the log keeps.
func (s langGraph) wantCheckpoint(t *testing.T, p messageReader, agent, thread string) {
	t.Helper()
	var state struct {
		Values struct{ Messages []graphMessage }
	}
	s.get(t, agent, thread, "/state", &state)
	roles := map[string]string{"human": "user", "ai": "assistant", "tool": "tool"}
	var there, here []kit.Message
	for _, m := range state.Values.Messages {
		message := kit.Message{ID: m.ID, Role: roles[m.Type], Content: m.Content, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			call := kit.ToolCallMessage(kit.ModelCall{Arguments: string(c.Args)}).ToolCalls[0]
			call.ID = c.ID
			message.ToolCalls = append(message.ToolCalls, call)
		}
		there = append(there, message)
	}
	for _, m := range p.MessagesOf(t, thread) {
		m.ID, m.ToolCallID = remote.OriginalID(agent, m.ID), remote.OriginalID(agent, m.ToolCallID)
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for i, c := range m.ToolCalls {
			m.ToolCalls[i].ID, m.ToolCalls[i].Function.Name = remote.OriginalID(agent, c.ID), ""
		}
		here = append(here, m)
	}
	for _, list := range [][]kit.Message{here, there} {
		for i, m := range kit.ByCall(list) {
			if m.Role == "tool" {
				list[i].ID = ""
			}
		}
	}
	if diff := cmp.Diff(here, there, withoutEmptyCalls); diff != "" {
		t.Errorf("messages in LangGraph's checkpoint (-log +checkpoint):\n%s", diff)
	}
}

// withoutEmptyCalls makes comparisons of messages take an empty list of calls for none.
var withoutEmptyCalls = cmp.Transformer("withoutEmptyCalls", func(m kit.Message) kit.Message {
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
	}
	return m
})

// awaitIdle waits until LangGraph has no run of a thread that goes on: it refuses a second one.
func (s langGraph) awaitIdle(t *testing.T, agent, thread string) {
	t.Helper()
	for {
		var runs []struct{ Status string }
		s.get(t, agent, thread, "/runs", &runs)
		if !slices.ContainsFunc(runs, func(r struct{ Status string }) bool { return r.Status == "running" || r.Status == "pending" }) {
			return
		}
	}
}

// wantConversation checks that the log, and a reader that has seen nothing of a thread, have the messages
// that a client of a generation has after the thread's last run.
func wantConversation(t *testing.T, p *kit.Perdure, g kit.Generation, thread, lastRun string, client []kit.Message) {
	t.Helper()
	if diff := cmp.Diff(client, p.MessagesOf(t, thread), withoutEmptyCalls); diff != "" {
		t.Errorf("messages of the log (-client +log):\n%s", diff)
	}
	in := kit.Input{ThreadID: thread, RunID: lastRun, ProtocolVersion: "1.0"}
	if g.Legacy {
		in.ProtocolVersion = ""
	}
	fresh := p.NewFollower(t, in)
	fresh.AttachPath = kit.EventsPath(fresh.In) + "?join=true"
	fresh.Finish(t)
	if diff := cmp.Diff(client, kit.ShownMessages(t, nil, fresh.Events), withoutEmptyCalls); diff != "" {
		t.Errorf("messages of a fresh reader (-client +reader):\n%s", diff)
	}
}

// counted returns the answer to "count to n".
func counted(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i+1)
	}
	return b.String()
}
