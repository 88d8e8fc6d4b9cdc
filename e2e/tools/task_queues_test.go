package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// queueAgents are agents with tools that only the workers of a task queue run.
const queueAgents = `name: cashier
model: openai/scripted-by-the-test
tools: [open_drawer, ring_bell]
---
name: greeter
model: openai/scripted-by-the-test
tools: ["mcp:floor/*"]
---
kind: tool
name: open_drawer
description: Opens a drawer.
parameters: {type: object, required: [number], properties: {number: {type: integer}}}
http: {method: POST, url: "%[1]s/drawer", headers: {Authorization: "Bearer ${secret:SHOP_TOKEN}"}}
taskQueue: till
parallel: false
---
kind: tool
name: ring_bell
description: Rings the bell.
http: {method: POST, url: "%[1]s/bell"}
---
kind: mcp
name: floor
command: [%[2]s, %[3]s]
env: {SHOP_TOKEN: "${secret:SHOP_TOKEN}"}
taskQueue: till
`

// drawerServer is the server of the tools. Only one drawer may be open at a time, and each waits
// for the bell.
type drawerServer struct {
	open sync.Mutex
	rung chan struct{}

	mu      sync.Mutex
	drawers []string
	wrong   []string
}

func (c *drawerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/bell" {
		close(c.rung)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if !c.open.TryLock() {
		c.note(&c.wrong, "another drawer is open")
	} else {
		defer c.open.Unlock()
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+kit.WorkerSecret {
		c.note(&c.wrong, "opened by "+got)
	}
	c.note(&c.drawers, string(body))
	select {
	case <-c.rung:
	case <-r.Context().Done():
		c.note(&c.wrong, "the bell did not ring concurrently")
	}
}

// note adds to a list.
func (c *drawerServer) note(list *[]string, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, what)
}

// setupQueues starts an API and a worker of the default queue, which has no secret. others are the
// settings of a worker of the other queue.
func setupQueues(t *testing.T, server string) (c *kit.Cluster, g *kit.API, others []string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("node", "mcp", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	c = kit.SetupCluster(t)
	c.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Agents, "all.yaml"), fmt.Appendf(nil, queueAgents, server, node, script), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Env = append(c.Env, "PERDURE_AGENTS="+c.Agents, "PERDURE_ALLOW_PRIVATE_HOSTS=true", "PERDURE_TOOL_GRACE=10s")
	g = c.StartAPI(t)
	c.StartWorker(t)
	return c, g, []string{"PERDURE_TASK_QUEUES=till", "PERDURE_TOOLS_ONLY=true", "PERDURE_SECRET_SHOP_TOKEN=" + kit.WorkerSecret}
}

// missingTools returns the tools of an agent that no worker has.
func missingTools(t *testing.T, e *kit.Endpoint, agent string) []string {
	t.Helper()
	resp, err := e.Get(t.Context(), "/v1/agents/"+agent, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var shown struct {
		Missing []string `json:"unavailableTools"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	return shown.Missing
}

// TestToolsOnTaskQueues: calls of a tool with its own task queue go to the workers of that queue,
// which alone have its secrets and MCP servers. Calls of a tool that is not parallel run one after
// another, concurrently with other tools. Without a worker of the queue the run fails.
func TestToolsOnTaskQueues(t *testing.T) {
	t.Parallel()
	s := &drawerServer{rung: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, g, others := setupQueues(t, server.URL)

	prompt, done := kit.Marked("Open the drawers."), kit.Marked("Open.")
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
			{Name: "open_drawer", Arguments: `{"number":1}`}, {Name: "open_drawer", Arguments: `{"number":2}`},
			{Name: "ring_bell", Arguments: `{}`}, {Name: "open_drawer", Arguments: `{"number":3}`},
		}}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
	if missing := missingTools(t, g.Endpoint, "cashier"); !slices.Equal(missing, []string{"open_drawer"}) {
		t.Errorf("missing tools of the agent = %q, want open_drawer", missing)
	}
	f := g.FollowAgent(t, "/v1/agents/cashier/runs", kit.NewInput(prompt))
	f.Finish(t)
	if last := f.Events[len(f.Events)-1]; last.Member("code") != "tool_unavailable" {
		t.Fatalf("end of the run without a worker = %s, want tool_unavailable", last.Data)
	}
	if len(s.drawers) > 0 {
		t.Fatalf("opened drawers = %q, want none", s.drawers)
	}

	s.rung = make(chan struct{})
	c.Env = append(c.Env, others...)
	c.StartWorker(t)
	f = g.FollowAgent(t, "/v1/agents/cashier/runs", kit.NewInput(prompt))
	f.Finish(t)
	if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" {
		t.Errorf("end of the run = %s, want RUN_FINISHED", last.Data)
	}
	if want := []string{`{"number":1}`, `{"number":2}`, `{"number":3}`}; !slices.Equal(s.drawers, want) || len(s.wrong) > 0 {
		t.Errorf("opened drawers = %q, of which wrong: %q, want 1, 2 and 3", s.drawers, s.wrong)
	}

	hello := kit.Marked("Say hello.")
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: hello, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "floor_greet", Arguments: `{"name":"` + kit.Mark + `"}`}}}},
		kit.Fixture{Match: kit.Match{UserMessage: hello, HasToolResult: &yes}, Response: kit.Response{Content: done}})
	f = g.FollowAgent(t, "/v1/agents/greeter/runs", kit.NewInput(hello))
	f.Finish(t)
	if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" {
		t.Fatalf("end of the run = %s, want RUN_FINISHED", last.Data)
	}
	if got := kit.ToolResultsSent(t, hello); !slices.Equal(got, []string{"Hello, " + kit.Mark + "!"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"Hello, " + kit.Mark + "!"})
	}
	if strings.Contains(fmt.Sprint(f.Events), kit.WorkerSecret) {
		t.Error("events have the secret, want it redacted")
	}
}
