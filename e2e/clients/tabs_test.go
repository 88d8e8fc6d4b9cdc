package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// writer is a model server whose answer grows while the test adds words. A repeated call begins
// with the first word again.
type writer struct {
	mu     sync.Mutex
	words  int
	isDone bool
	grown  chan struct{} // closed when the answer grows
}

// reset begins another answer.
func (m *writer) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words, m.isDone = 0, false
}

// grow makes the answer n words long.
func (m *writer) grow(n int, isDone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words, m.isDone = n, isDone
	close(m.grown)
	m.grown = make(chan struct{})
}

// progress returns how much is written, and a channel that is closed at the next word.
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

// holdsSockets is an expression that tells whether a page holds the WebSockets of all tabs. The
// client ID of a page is the owner of its locks. A tab has a lock whose name begins with that of
// the leader.
const holdsSockets = `navigator.locks.request("identity " + Math.random(), async ({ name }) => {
	const { held } = await navigator.locks.query();
	const { clientId } = held.find((lock) => lock.name === name);
	return held.some((lock) => lock.clientId === clientId && lock.name.startsWith("perdure ") && held.some((other) => other.name.startsWith(lock.name + " ")));
})`

// threadTab is a tab with the page of thread.jsx.
type threadTab struct {
	*kit.Tab
	thread string
}

// TestThreadPage: a page that shows a thread with the TypeScript client, in one tab and in many,
// over both transports. All cases share one process of Perdure, whose model the test controls.
func TestThreadPage(t *testing.T) {
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
	source, err := os.ReadFile(filepath.Join("node", "page", "thread.jsx"))
	if err != nil {
		t.Fatal(err)
	}
	page := kit.NewFrontEnd(t, "page").Bundle(t, map[string]string{"page.jsx": string(source)})
	for _, c := range []struct {
		transport     string
		tabsPerThread int
	}{{"websocket", 20}, {"sse", 5}} {
		t.Run(c.transport, func(t *testing.T) {
			origin := kit.ServePage(t, p.Endpoint, page)
			origin.RefusesSockets.Store(c.transport == "sse")
			reconnectIdle(t, p, origin, c.transport)
			model.reset()
			followInTabs(t, p, model, origin, c.transport, c.tabsPerThread)
		})
	}
	t.Run("return to websocket", func(t *testing.T) {
		model.reset()
		returnToSockets(t, p, model, kit.ServePage(t, p.Endpoint, page))
	})
}

// returnToSockets shows a run while a proxy begins and ceases to swallow the handshakes of
// WebSockets. The page falls back to HTTP after 5 s, and returns to a WebSocket within a minute. No
// event is lost or repeated.
func returnToSockets(t *testing.T, p *kit.Perdure, model *writer, origin *kit.PageOrigin) {
	t.Helper()
	thread, prompt := kit.NewThreadOf(p), kit.Marked("Write.")
	origin.SwallowsSockets.Store(true)
	tab := kit.NewBrowser(t).OpenWithClock(origin.URL+"/page.html#"+thread, "WebSocket", "Failed to load resource")
	tab.Forward(5 * time.Second)
	tab.Await("main.idle.connected.sse", "")
	tab.Evaluate(fmt.Sprintf("window.store.send(%q).then(() => {})", prompt), nil)
	model.grow(10, false)
	tab.Await("main.running.connected.sse li:last-child", "word10.")
	origin.SwallowsSockets.Store(false)
	tab.Forward(30 * time.Second)
	model.grow(20, false) // data before the stream counts as silent
	tab.Await("main.running.connected li:last-child", "word20.")
	tab.Forward(30 * time.Second)
	tab.Await("main.running.connected.websocket", "")
	model.grow(30, true)
	tab.Await("main.idle.connected.websocket li:last-child", "word30.")
	wantWritten(t, p, threadTab{tab, thread}, prompt, 30)
	var shown []string
	if tab.Evaluate("window.connections", &shown); !slices.Equal(shown, []string{"connecting", "connected"}) {
		t.Errorf("states of the connection = %q, want connecting and connected", shown)
	}
	if n := origin.Sockets(); n != 2 {
		t.Errorf("number of WebSockets = %d, want 2: one that is swallowed, and one after the fallback", n)
	}
}

// reconnectIdle shows a thread without events while the server is killed and started. The page is
// connected as soon as the server has accepted its stream, and does not wait for a heartbeat, which
// the server sends every 15 s.
func reconnectIdle(t *testing.T, p *kit.Perdure, origin *kit.PageOrigin, transport string) {
	t.Helper()
	tab := kit.OpenTab(t, origin.URL+"/page.html#"+kit.NewThread(), "WebSocket", "Failed to load resource")
	tab.Await("main.idle.connected."+transport, "")
	p.Kill()
	tab.Await("main.idle.reconnecting", "")
	p.Start(t)
	ready := time.Now()
	tab.Await("main.idle.connected."+transport, "")
	if took := time.Since(ready); took > 5*time.Second {
		t.Errorf("the page of an idle thread is connected %v after the server is ready, want at most 5s", took)
	}
	tab.Close()
}

// followInTabs follows runs of several threads in tabs over a transport: while the answers are
// streamed, the tab that reads for all closes, a tab reloads, and the server is killed. All tabs
// end with the same messages. They share one WebSocket or, behind a proxy that refuses WebSockets,
// a few event streams.
func followInTabs(t *testing.T, p *kit.Perdure, model *writer, origin *kit.PageOrigin, transport string, tabsPerThread int) {
	t.Helper()
	browser, threads := kit.NewBrowser(t), []string{kit.NewThread(), kit.NewThread(), kit.NewThread()}
	prompt, before := kit.Marked("Write."), origin.Sockets()
	var urls []string
	for _, thread := range threads {
		p.Threads.Add(thread)
		urls = append(urls, slices.Repeat([]string{origin.URL + "/page.html#" + thread}, tabsPerThread)...)
	}
	var tabs []threadTab
	// While the server restarts, the browser reports connections that fail.
	for i, tab := range browser.OpenAll(urls, "WebSocket", "Failed to load resource") {
		tabs = append(tabs, threadTab{tab, threads[i/tabsPerThread]})
	}
	for i := range threads {
		tabs[i*tabsPerThread].Evaluate(fmt.Sprintf("window.store.send(%q).then(() => {})", prompt), nil)
	}
	write := func(n int, status string) {
		t.Helper()
		model.grow(n, status == "idle")
		for _, tab := range tabs {
			tab.Await(fmt.Sprintf("main.%s.connected.%s li:last-child", status, transport), fmt.Sprintf("word%d.", n))
		}
	}
	write(10, "running")
	if n := origin.Sockets() - before; transport == "websocket" && n != 1 {
		t.Errorf("%d tabs: number of WebSockets = %d, want 1", len(tabs), n)
	}
	for i, tab := range tabs {
		var isLeader bool
		if tab.Evaluate(holdsSockets, &isLeader); isLeader {
			tab.Close()
			tabs = slices.Delete(tabs, i, i+1)
			break
		}
	}
	if want := len(threads)*tabsPerThread - 1; len(tabs) != want {
		t.Fatalf("%d tabs are left, want %d: none reads for all", len(tabs), want)
	}
	write(20, "running")
	if n := origin.Sockets() - before; transport == "websocket" && n > 2 {
		t.Errorf("number of WebSockets after a closed tab = %d, want at most 2", n)
	}
	tabs[0].Reload()
	write(30, "running")
	p.Restart(t)
	write(40, "idle")
	// Three responses with streams, the changes of approvals, a run that begins, and responses that
	// the browser has closed and the server still counts.
	if n := origin.MostStreams(); n > 8 {
		t.Errorf("number of concurrent event streams = %d, want at most 8", n)
	}
	for _, tab := range tabs {
		wantWritten(t, p, tab, prompt, 40)
	}
}

// wantWritten fails the test unless a tab shows the prompt and an answer of n words, as its thread
// has them.
func wantWritten(t *testing.T, p *kit.Perdure, tab threadTab, prompt string, n int) {
	t.Helper()
	var answer strings.Builder
	for i := range n {
		fmt.Fprintf(&answer, "word%d. ", i+1)
	}
	var messages []kit.Message
	tab.Evaluate("window.store.getSnapshot().messages", &messages)
	kit.WantMessages(t, []kit.Message{kit.UserMessage(prompt), kit.AssistantMessage(answer.String())}, messages)
	if !slices.Equal(idsOf(messages), idsOf(p.MessagesOf(t, tab.thread))) {
		t.Errorf("messages of a tab = %+v, want those of its thread", messages)
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
