package remote

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/e2e/kit"
)

// npmServers are AG-UI servers from npm, by the agents that the tests give them.
var npmServers = []npmServer{
	{name: "mastra", script: "mastra_agent.mjs", folder: "mastra", path: "/", modelAPI: "completions"},
	{name: "builtin", script: "builtin_agent.mjs", folder: "copilotkit", path: "/api/agent/assistant/run", modelAPI: "responses"},
	{name: "mock", script: "mock_agent.mjs", folder: "model", path: "/"},
}

// npmServer is an AG-UI server whose code others have written: Mastra with its adapter, CopilotKit's
// runtime with its built-in agent, and aimock. It has the agents NAME-never and NAME-restart.
type npmServer struct {
	name, script, folder, path string
	modelAPI                   string // of the model that it calls; "" = it calls none
	*kit.AgentServer
}

// eachNPMServer runs a test in parallel with each of the servers, and a perdure with its agents.
func eachNPMServer(t *testing.T, servers []npmServer, test func(t *testing.T, p *kit.Perdure, s npmServer)) {
	t.Helper()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.AgentServer = kit.StartAgentServer(t, s.script, s.folder)
			test(t, kit.SetupWith(t, s.definition("never")+"---\n"+s.definition("restart")), s)
		})
	}
}

// definition returns the definition of the agent with a retry rule.
func (s npmServer) definition(retry string) string {
	return "name: " + s.name + "-" + retry + "\nremote: {url: 'http://" + s.Address + s.path + "', retry: " + retry + "}\n"
}

// runs returns the URL that starts runs of the agent with a retry rule.
func (s npmServer) runs(p *kit.Perdure, retry string) string {
	return p.URL("/v1/agents/" + s.name + "-" + retry + "/runs")
}

// receivedRun is a request that the server has received.
type receivedRun struct {
	Input kit.Input `json:"input"`
	// Left is true if the client left before the end of the response.
	Left bool `json:"left"`
}

// received returns the requests with a message that contains a text.
func (s npmServer) received(t *testing.T, text string) (runs []receivedRun) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address+"/received", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	var all []receivedRun
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, run := range all {
		for _, m := range run.Input.Messages {
			if strings.Contains(m.Content, text) {
				runs = append(runs, run)
				break
			}
		}
	}
	return runs
}

// wantLogged checks that the log, and a reader that has seen nothing of a thread, have the messages
// that a client has after the thread's last run, with the same IDs.
func wantLogged(t *testing.T, p *kit.Perdure, thread, lastRun string, client []kit.Message) {
	t.Helper()
	if diff := cmp.Diff(client, p.MessagesOf(t, thread)); diff != "" {
		t.Errorf("messages of the log (-client +log):\n%s", diff)
	}
	fresh := p.NewFollower(t, kit.Input{ThreadID: thread, RunID: lastRun})
	fresh.AttachPath = kit.EventsPath(fresh.In) + "?join=true"
	fresh.Finish(t)
	if diff := cmp.Diff(client, kit.ShownMessages(t, nil, fresh.Events)); diff != "" {
		t.Errorf("messages of a fresh reader (-client +reader):\n%s", diff)
	}
}

// wantModelInput checks the texts of the user and of the model in the server's last request to the model.
// Mastra adds the messages that it receives to those that it has stored, by their IDs.
func (s npmServer) wantModelInput(t *testing.T, prompt string, want ...string) {
	t.Helper()
	if s.modelAPI == "" {
		return
	}
	calls := kit.SharedModel.CallsOf(t, s.modelAPI, prompt)
	if len(calls) == 0 {
		t.Fatalf("requests to the model with %q = none, want one", prompt)
	}
	var got []string
	for _, m := range calls[len(calls)-1].Body.Messages {
		if text := m.Text(); text != "" && m.Role != "system" && m.Role != "tool" {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts that the model received (-want +got):\n%s", diff)
	}
}

// wantOwnIDs checks that the server has received the messages before its last run as it has sent them:
// with the IDs of its messages and calls, which differ from those in the log.
func (s npmServer) wantOwnIDs(t *testing.T, agent, prompt string, log []kit.Message) {
	t.Helper()
	runs := s.received(t, prompt)
	if len(runs) == 0 {
		t.Fatalf("the server has received no run with %q, want one", prompt)
	}
	want := make([]kit.Message, len(log))
	for i, m := range log {
		want[i] = m
		want[i].ID, want[i].ToolCallID = remote.OriginalID(agent, m.ID), remote.OriginalID(agent, m.ToolCallID)
		want[i].ToolCalls = nil
		for _, c := range m.ToolCalls {
			c.ID = remote.OriginalID(agent, c.ID)
			want[i].ToolCalls = append(want[i].ToolCalls, c)
		}
		if m.Role == "assistant" && (want[i].ID == m.ID || !strings.HasPrefix(m.ID, agent+":")) {
			t.Errorf("ID of a message in the log = %q, want one that begins with %s:", m.ID, agent)
		}
	}
	got := runs[len(runs)-1].Input.Messages
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("messages that the server received (-want +got):\n%s", diff)
	}
}
