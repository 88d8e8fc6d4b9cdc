package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// journalServer has the model and the tools of the pipelines, and records their requests. The
// prompt determines what the model answers, and each answer depends on its request only, so that
// runs of one agent are comparable. It is safe for concurrent use.
type journalServer struct {
	server *httptest.Server
	// before is called before a request is answered, and may wait. If it returns false the request
	// gets no answer; nil = answer at once. It must be set before the first request.
	before func(context.Context, *request) bool

	mu        sync.Mutex
	requests  []*request
	failing   map[string]string // idempotency key that flaky fails, by order and what
	active    int               // active tool requests
	maxActive int               // their maximum
}

// request is one recorded request.
type request struct {
	tool     string // name of the tool, or model
	order    string // name of the run
	what     string
	key      string   // Idempotency-Key
	trace    string   // traceparent
	heard    []string // user messages of a model call
	answered bool
}

// startJournalServer starts a server that notes each request.
func startJournalServer(t *testing.T) *journalServer {
	t.Helper()
	s := &journalServer{failing: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /tools/{tool}", s.useTool)
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	return s
}

// agents returns a folder with the agents of testdata/pipelines, which use the server's tools.
func (s *journalServer) agents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join("testdata", "pipelines", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(body), "http://JOURNAL", s.server.URL)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// environ returns the environment variables that make a process use the server and the agents.
func (s *journalServer) environ(agents string) []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + s.server.URL + "/v1", "PERDURE_ALLOW_PRIVATE_HOSTS=true", "PERDURE_AGENTS=" + agents}
}

// serve records a request and answers it.
func (s *journalServer) serve(ctx context.Context, req *request, answer func()) {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if s.before != nil && !s.before(ctx, req) {
		return
	}
	s.mu.Lock()
	req.answered = true
	s.mu.Unlock()
	answer() // a disconnected client is no error
}

// requestsOf returns copies of the requests of a run.
func (s *journalServer) requestsOf(order string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []request
	for _, req := range s.requests {
		if req.order == order {
			list = append(list, *req)
		}
	}
	return list
}

// useTool answers a tool call.
func (s *journalServer) useTool(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Order string `json:"order"`
		What  string `json:"what"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.count(1)
	defer s.count(-1)
	req := &request{tool: r.PathValue("tool"), order: in.Order, what: in.What, key: r.Header.Get("Idempotency-Key"), trace: r.Header.Get("Traceparent")}
	s.serve(r.Context(), req, func() {
		if req.tool == "refuse" || req.tool == "flaky" && s.isFirstCall(req) {
			http.Error(w, "it does not work", http.StatusUnprocessableEntity)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"kept": in.What})
	})
}

// count changes the number of active requests.
func (s *journalServer) count(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active += more
	s.maxActive = max(s.maxActive, s.active)
}

// isFirstCall reports whether the request belongs to the first call with its order and what.
// Attempts of a call share their idempotency key.
func (s *journalServer) isFirstCall(req *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := req.order + req.what
	if s.failing[about] == "" {
		s.failing[about] = req.key
	}
	return s.failing[about] == req.key
}

// task is the model's script in a prompt. Call is what the model first calls the tool keep with;
// Hands is the agent that it calls in its place. Say is the answer, as text or JSON. Better is the
// answer after the model received the error that Say is invalid.
type task struct {
	Order  string          `json:"order"`
	Call   string          `json:"call"`
	Hands  string          `json:"hands"`
	Say    json.RawMessage `json:"say"`
	Better json.RawMessage `json:"better"`
}

var orderName = regexp.MustCompile(kit.Mark + `[A-Z0-9]{12}`)

// taskOf finds the script in a conversation, and reports whether the model has called its tool.
// Without a script the answer is a thank you.
func taskOf(messages []kit.ChatMessage) (script task, called bool) {
	name := ""
	for _, m := range messages {
		if m.Role == "tool" {
			called = true
		}
		if m.Role != "user" {
			continue
		}
		said := m.Text()
		if name == "" {
			name = orderName.FindString(said)
		}
		if _, text, ok := strings.Cut(said, "script:"); ok {
			script, called = task{}, false
			_ = json.Unmarshal([]byte(text), &script)
		} else if script.Better != nil {
			script.Say = script.Better
		}
	}
	if script.Say == nil {
		script.Order, script.Say = name, json.RawMessage(`"Thank you."`)
	}
	return script, called
}

// calls returns the first call of the model.
func (script task) calls() string {
	tool, arguments := "keep", fmt.Sprintf(`{"order":%q,"what":%q}`, script.Order, script.Call)
	if script.Hands != "" {
		tool, arguments = script.Hands, fmt.Sprintf(`{"task":%q}`, script.Order+" later")
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_same","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, kit.Quote(arguments))
}

// complete answers a model call.
func (s *journalServer) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []kit.ChatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, called := taskOf(body.Messages)
	var text string
	if json.Unmarshal(script.Say, &text) != nil {
		text = string(script.Say)
	}
	delta, reason := `{"content":`+kit.Quote(text)+`}`, "stop"
	if first := script.Call + script.Hands; first != "" && !called {
		delta, reason, text = script.calls(), "tool_calls", "call "+first
	}
	req := &request{tool: "model", order: script.Order, what: text, trace: r.Header.Get("Traceparent")}
	for _, m := range body.Messages {
		if m.Role == "user" {
			req.heard = append(req.heard, m.Text())
		}
	}
	s.serve(r.Context(), req, func() {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []string{delta + `,"finish_reason":null`, `{},"finish_reason":"` + reason + `"`} {
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"journal\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", choice)
		}
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	})
}
