package remote

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// flakyServer has agents that fail, one for each path. Its agents number their events with SSE IDs from
// 1, and honor Last-Event-ID. It is safe for concurrent use.
type flakyServer struct {
	URL string

	mu       sync.Mutex
	agents   map[string]func(*exchange)
	requests map[string][]*http.Request
}

// startFlakyServer starts a server that ends with the test.
func startFlakyServer(t *testing.T) *flakyServer {
	t.Helper()
	s := newFlakyServer()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// newFlakyServer returns a server that does not listen.
func newFlakyServer() *flakyServer {
	return &flakyServer{agents: map[string]func(*exchange){}, requests: map[string][]*http.Request{}}
}

// handle sets the agent of a path.
func (s *flakyServer) handle(path string, agent func(*exchange)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[path] = agent
}

// received returns the requests to a path so far.
func (s *flakyServer) received(path string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[path])
}

// ServeHTTP implements http.Handler.
func (s *flakyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{w: w, r: r}
	if err := json.NewDecoder(r.Body).Decode(&e.in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	agent := s.agents[r.URL.Path]
	s.requests[r.URL.Path] = append(s.requests[r.URL.Path], r)
	e.n = len(s.requests[r.URL.Path])
	s.mu.Unlock()
	if agent == nil {
		http.NotFound(w, r)
		return
	}
	agent(e)
}

// exchange is a request to an agent, and its response.
type exchange struct {
	w  http.ResponseWriter
	r  *http.Request
	in struct {
		ThreadID string            `json:"threadId"`
		RunID    string            `json:"runId"`
		Messages []json.RawMessage `json:"messages"`
	}
	n    int // number of the request at its agent, from 1
	sent int // SSE ID of the last event
}

// write writes a part of the response. A client that has left reads nothing.
func (e *exchange) write(text string) {
	if e.w.Header().Get("Content-Type") == "" {
		e.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = e.w.Write([]byte(text))
	_ = http.NewResponseController(e.w).Flush()
}

// emit writes events with the next SSE IDs.
func (e *exchange) emit(events ...string) {
	for _, event := range events {
		e.sent++
		e.write(fmt.Sprintf("id: %d\ndata: %s\n\n", e.sent, event))
	}
}

// begin writes the events of run(1) up to the middle of its text.
func (e *exchange) begin() { e.emit(e.run(1)[:middle]...) }

// finish writes the events of the whole run, or those after Last-Event-ID.
func (e *exchange) finish() {
	last, err := strconv.Atoi(e.r.Header.Get("Last-Event-ID"))
	if err != nil {
		e.emit(e.run(e.n)...)
		return
	}
	e.sent = last
	e.emit(e.run(1)[last:]...)
}

// reset closes the connection with RST.
func (e *exchange) reset() {
	conn, _, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// middle is the number of events of a run up to the middle of its text.
const middle = 21

// run returns the events of a run, which differ for each attempt.
func (e *exchange) run(attempt int) []string {
	said := saidIn(attempt)
	ids := `"threadId":` + kit.Quote(e.in.ThreadID) + `,"runId":` + kit.Quote(e.in.RunID)
	return []string{
		`{"type":"RUN_STARTED",` + ids + `}`,
		`{"type":"STEP_STARTED","stepName":"work"}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"by":` + kit.Quote(said) + `}}`,
		`{"type":"REASONING_START","messageId":"r1"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"r1","role":"reasoning"}`,
		`{"type":"REASONING_MESSAGE_CONTENT","messageId":"r1","delta":` + kit.Quote(said+"thought") + `}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"r1"}`,
		`{"type":"REASONING_END","messageId":"r1"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search"}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{}"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c1"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"t1","toolCallId":"c1","content":` + kit.Quote(said+"found") + `}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/found","value":true}]}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"scout"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"h1","role":"assistant","subagentRunId":"s1"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"h1","delta":` + kit.Quote(said+"scouted") + `}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"h1"}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"s1"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s2","name":"watcher"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":` + kit.Quote(said+"begins, ") + `}`, // the middle
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"ends."}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"s2"}`,
		`{"type":"STEP_FINISHED","stepName":"work"}`,
		`{"type":"RUN_FINISHED",` + ids + `}`,
	}
}

// saidIn returns the text with which all texts of an attempt begin.
func saidIn(attempt int) string { return fmt.Sprintf("%s attempt %d ", kit.Mark, attempt) }

// wantRun returns the messages and the state of a run that attempt has made.
func wantRun(in kit.Input, attempt int) (messages []kit.Message, state map[string]any) {
	said := saidIn(attempt)
	return append(slices.Clone(in.Messages),
		kit.Message{Role: "reasoning", Content: said + "thought"}, kit.ToolCallMessage(kit.ModelCall{Name: "search", Arguments: "{}"}),
		kit.ToolMessage(said+"found"), kit.AssistantMessage(said+"scouted"), kit.AssistantMessage(said+"begins, ends.")), map[string]any{"by": said, "found": true}
}

// startWith starts a process with these definitions as the only agents, and with further variables.
func startWith(t *testing.T, definitions string, env ...string) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Env = t.TempDir(), env
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// decode returns a value from JSON.
func decode[T any](t *testing.T, raw []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return value
}

// writeFile writes a file of a test.
func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
