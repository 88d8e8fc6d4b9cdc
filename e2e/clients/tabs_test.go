package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// writer is a model server whose answer grows while the test adds words. A repeated call begins with
// the first word again.
type writer struct {
	mu     sync.Mutex
	words  int
	isDone bool
	grown  chan struct{} // closed when the answer grows
}

// grow makes the answer n words long.
func (m *writer) grow(n int, isDone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words, m.isDone = n, isDone
	close(m.grown)
	m.grown = make(chan struct{})
}

func (m *writer) progress() (words int, isDone bool, grown chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.words, m.isDone, m.grown
}

func (m *writer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		chunk, _ := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk)
		_ = http.NewResponseController(w).Flush()
	}
	for sent := 0; ; {
		words, isDone, grown := m.progress()
		for ; sent < words; sent++ {
			send(map[string]any{"role": "assistant", "content": fmt.Sprintf("word%d. ", sent+1)}, nil)
		}
		if isDone {
			send(map[string]any{}, "stop")
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
			return
		}
		select {
		case <-grown:
		case <-r.Context().Done():
			return
		}
	}
}

// TestTabs: sixty tabs follow three threads over one WebSocket. While the answers are streamed, the
// tab with the WebSocket closes, and the server is killed. All tabs end with the same messages.
func TestTabs(t *testing.T) {
	const tabsPerThread = 20
	kit.NeedBrowser(t)
	model := &writer{grown: make(chan struct{})}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "writer.yaml"), []byte("name: writer\nmodel: openai/writer\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + server.URL + "/v1"}
	p.InspectAtEnd(t)
	p.Start(t)
	origin := kit.ServePage(t, p.Endpoint, nil)
	browser := kit.OpenBrowser(t, origin)

	threads := []string{kit.NewThread(), kit.NewThread(), kit.NewThread()}
	prompt := kit.Marked("Write.")
	for _, thread := range threads {
		p.Threads.Add(thread)
		browser.Do(t, map[string]any{"open": thread, "count": tabsPerThread})
	}
	for _, thread := range threads {
		browser.Do(t, map[string]any{"say": prompt, "thread": thread})
	}
	write := func(n int, isDone bool) {
		t.Helper()
		model.grow(n, isDone)
		until := map[string]any{"text": fmt.Sprintf("word%d.", n), "status": "running"}
		if isDone {
			until["status"] = "idle"
		}
		browser.Do(t, map[string]any{"until": until})
	}
	write(10, false)
	if n := origin.Sockets(); n != 1 {
		t.Errorf("%d tabs have opened %d WebSockets", len(threads)*tabsPerThread, n)
	}
	browser.Do(t, map[string]any{"closeLeader": true})
	write(20, false)
	if n := origin.Sockets(); n > 2 {
		t.Errorf("after the close of a tab, %d WebSockets were opened", n)
	}
	browser.Do(t, map[string]any{"reload": threads[0]})
	write(30, false)
	p.Restart(t)
	write(40, true)

	var answer strings.Builder
	for i := range 40 {
		fmt.Fprintf(&answer, "word%d. ", i+1)
	}
	shown := browser.Do(t, map[string]any{"show": true})
	if len(shown) != len(threads)*tabsPerThread-1 {
		t.Fatalf("%d tabs", len(shown))
	}
	for _, tab := range shown {
		kit.WantMessages(t, []kit.Message{kit.UserMessage(prompt), kit.AssistantMessage(answer.String())}, tab.Messages)
		if !slices.Equal(idsOf(tab.Messages), idsOf(p.MessagesOf(t, tab.Thread))) || tab.Connection != "connected" {
			t.Errorf("a tab shows %+v", tab)
		}
	}
}

// idsOf returns the IDs of messages.
func idsOf(messages []kit.Message) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}

// TestReactChat: the page of the guide "Your first chat in React" shows an approval in two tabs and
// after a reload. A tab approves it after a restart of the server, and both show the answer.
func TestReactChat(t *testing.T) {
	kit.NeedBrowser(t)
	p := kit.SetupWith(t, `name: refund
model: scripted/refund
tools: [calculate]
approvals: [{tools: [calculate]}]
---
kind: script
name: refund
turns:
  - steps:
      - calls: [{tool: calculate, arguments: {expression: "40+40"}}]
      - say: "The shop has refunded {calculate}."
`)
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "react-chat.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```tsx\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 2 {
		t.Fatalf("the guide has %d blocks of TSX, want App.tsx and Approvals.tsx", len(blocks))
	}
	origin := kit.ServePage(t, p.Endpoint, map[string]string{
		"App.tsx": blocks[0][1], "Approvals.tsx": blocks[1][1],
		"main.jsx": `import { createRoot } from "react-dom/client";
import App from "./App.tsx";

createRoot(document.getElementById("root")).render(<App />);
`,
	})
	browser, thread := kit.OpenBrowser(t, origin), kit.NewThread()
	p.Threads.Add(thread)
	browser.Do(t, map[string]any{"open": thread, "count": 2})
	browser.Do(t, map[string]any{"fill": kit.Marked("Please refund order A-1001."), "tab": 0})
	browser.Do(t, map[string]any{"click": "Send", "tab": 0, "until": map[string]any{"shows": "40+40"}})
	browser.Do(t, map[string]any{"reload": thread, "until": map[string]any{"shows": "40+40"}})
	p.Restart(t)
	browser.Do(t, map[string]any{"click": "Approve", "tab": 1, "until": map[string]any{"shows": "The shop has refunded 80."}})
}
