package e2e

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
)

// token is a secret of the worker's. It carries the mark, so that it is found in histories and
// logs.
const token = mark + "token"

// declared is what a folder says of an agent and of its tools: one by HTTP, and an MCP server.
const declared = `name: assistant
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

// shop answers at the second attempt, and keeps what it was asked.
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
	_, _ = io.WriteString(w, `{"order":"`+mark+`","you":"`+r.Header.Get("Authorization")+`"}`)
}

func TestToolsThatFilesDeclare(t *testing.T) {
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
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents, p.env = t.TempDir(), []string{"PERDURE_SECRET_SHOP_TOKEN=" + token}
	if err := os.WriteFile(filepath.Join(p.agents, "all.yaml"), fmt.Appendf(nil, declared, server.URL, node, script), 0o600); err != nil {
		t.Fatal(err)
	}
	p.keep(t)
	p.start(t)

	yes, no := true, false
	question, answer := user(say("Where is my order?")), say("On its way.")
	calls := []modelCall{
		{ID: "call_a", Name: "find_order", Arguments: `{"id":"` + mark + `/7","full":true}`},
		{ID: "call_b", Name: "shop-floor_greet", Arguments: `{"name":"` + mark + `"}`},
	}
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: question.Content, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: question.Content, HasToolResult: &yes}, Response: response{Content: answer}})
	in := newInput(question.Content)
	followed := p.followAgent(t, assistant, in)
	followed.finish(t)

	heard := map[string]string{}
	for _, c := range sharedModel.calls(t, question.Content) {
		for _, m := range c.Body.Messages {
			if m.Role == "tool" {
				heard[m.ToolCallID] = m.text()
			}
		}
	}
	if want := `{"order":"` + mark + `","you":"Bearer [secret]"}`; heard["call_a"] != want {
		t.Errorf("the model hears %q of the order, want %s", heard["call_a"], want)
	}
	if want := "Hello, " + mark + "!"; heard["call_b"] != want {
		t.Errorf("the model hears %q of the greeting, want %s", heard["call_b"], want)
	}
	progress := 0
	for _, e := range followed.events {
		if e.Type == "ACTIVITY_SNAPSHOT" && strings.Contains(string(e.Data), "clearing its throat") {
			progress++
		}
		if strings.Contains(string(e.Data), token) {
			t.Errorf("the secret is shown: %s", e.Data)
		}
	}
	if last := followed.events[len(followed.events)-1]; last.Type != "RUN_FINISHED" || progress != 1 {
		t.Errorf("the run ends with %s %s after %d activities", last.Type, last.Data, progress)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := "/orders/" + mark + "%2F7?full=true"; len(s.uris) != 2 || s.uris[0] != want || s.uris[1] != want || s.keys[0] == "" || s.keys[0] != s.keys[1] {
		t.Errorf("the shop was asked %q with keys %q", s.uris, s.keys)
	}
}
