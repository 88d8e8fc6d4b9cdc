package tools

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// declaredTools is an agent with an HTTP tool and an MCP server.
const declaredTools = `name: assistant
model: openai/scripted-by-the-test
tools: [find_order, "mcp:shop-floor/*"]
---
kind: tool
name: find_order
description: Finds an order.
parameters: {type: object, required: [id], properties: {id: {type: string}, full: {type: boolean}}}
http: {method: GET, url: "%s/orders/{id}", headers: {Authorization: "Bearer ${secret:SHOP_TOKEN}"}, timeout: 10s}
idempotent: true
taskQueue: till
---
kind: mcp
name: shop-floor
command: [%s, %s]
env: {SHOP_TOKEN: "${secret:SHOP_TOKEN}"}
taskQueue: floor
`

// shop is an HTTP tool server that answers the second attempt, and records its requests.
type shop struct {
	mu   sync.Mutex
	uris []string
	keys []string
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uris, s.keys = append(s.uris, r.RequestURI), append(s.keys, r.Header.Get("Idempotency-Key"))
	if len(s.uris) == 1 {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "closed for lunch", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"order":"`+kit.Mark+`","you":"`+r.Header.Get("Authorization")+`"}`)
}

func TestToolsOfFiles(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("node", "mcp", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Env = t.TempDir(), []string{"PERDURE_SECRET_SHOP_TOKEN=" + kit.WorkerSecret}
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), fmt.Appendf(nil, declaredTools, server.URL, node, script), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)

	yes, no := true, false
	question, answer := kit.UserMessage(kit.Marked("Where is my order?")), kit.Marked("On its way.")
	calls := []kit.ModelCall{
		{ID: "call_a", Name: "find_order", Arguments: `{"id":"` + kit.Mark + `/7","full":true}`},
		{ID: "call_b", Name: "shop-floor_greet", Arguments: `{"name":"` + kit.Mark + `"}`},
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
	in := kit.NewInput(question.Content)
	followed := p.FollowAgent(t, kit.AssistantPath, in)
	followed.Finish(t)

	heard := map[string]string{}
	for _, c := range kit.SharedModel.Calls(t, question.Content) {
		for _, m := range c.Body.Messages {
			if m.Role == "tool" {
				heard[m.ToolCallID] = m.Text()
			}
		}
	}
	if want := `{"order":"` + kit.Mark + `","you":"Bearer [secret]"}`; heard["call_a"] != want {
		t.Errorf("result of the order for the model: got %q, want %s", heard["call_a"], want)
	}
	if want := "Hello, " + kit.Mark + "!"; heard["call_b"] != want {
		t.Errorf("the model received %q for the greeting, want %s", heard["call_b"], want)
	}
	progress := 0
	for _, e := range followed.Events {
		if e.Type == "ACTIVITY_SNAPSHOT" && strings.Contains(string(e.Data), "clearing its throat") {
			progress++
		}
		if strings.Contains(string(e.Data), kit.WorkerSecret) {
			t.Errorf("event = %s, want no secret", e.Data)
		}
	}
	if last := followed.Events[len(followed.Events)-1]; last.Type != "RUN_FINISHED" || progress != 1 {
		t.Errorf("end of the run = %s %s after %d activities, want RUN_FINISHED after one", last.Type, last.Data, progress)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := "/orders/" + kit.Mark + "%2F7?full=true"; len(s.uris) != 2 || s.uris[0] != want || s.uris[1] != want || s.keys[0] == "" || s.keys[0] != s.keys[1] {
		t.Errorf("requests of the shop = %q with the keys %q, want two equal ones", s.uris, s.keys)
	}
}
