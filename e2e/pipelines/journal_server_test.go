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

// journalServer is where pipelines do their work: a model that says what its prompt has for it, and
// tools that keep a journal. What either answers depends on nothing but what it is asked, so that
// runs of one agent can be held against one another. It is safe for concurrent use.
type journalServer struct {
	server *httptest.Server
	// before is called before a request is answered, and may wait. It tells whether to answer. nil
	// = it is answered at once. It is set before the workshop is used.
	before func(context.Context, *request) bool

	mu      sync.Mutex
	deeds   []*request
	failing map[string]string // the key that flaky fails, by order and what
	busy    int               // how many requests of tools are under way
	busiest int               // and were at most
}

// request is a request that the workshop had.
type request struct {
	tool     string // or model
	order    string // whose it is
	what     string
	key      string   // of its idempotency
	trace    string   // the header traceparent
	heard    []string // by the model, of users
	answered bool
}

func startJournalServer(t *testing.T) *journalServer {
	t.Helper()
	w := &journalServer{failing: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", w.complete)
	mux.HandleFunc("POST /tools/{tool}", w.useTool)
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	return w
}

// agents returns a folder with the agents that work there, and their tools.
func (w *journalServer) agents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join("testdata", "workshop", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(body), "http://WORKSHOP", w.server.URL)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// environ tells a process to use the workshop.
func (w *journalServer) environ(agents string) []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + w.server.URL + "/v1", "PERDURE_ALLOW_PRIVATE_HOSTS=true", "PERDURE_AGENTS=" + agents}
}

// work answers a request, and notes it.
func (w *journalServer) work(ctx context.Context, d *request, answer func()) {
	w.mu.Lock()
	w.deeds = append(w.deeds, d)
	w.mu.Unlock()
	if w.before != nil && !w.before(ctx, d) {
		return
	}
	w.mu.Lock()
	d.answered = true
	w.mu.Unlock()
	answer() // a caller that is gone needs no answer
}

// done returns the deeds of an order so far, as copies.
func (w *journalServer) done(order string) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []request
	for _, d := range w.deeds {
		if d.order == order {
			list = append(list, *d)
		}
	}
	return list
}

func (w *journalServer) useTool(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		Order string `json:"order"`
		What  string `json:"what"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.count(1)
	defer w.count(-1)
	d := &request{tool: r.PathValue("tool"), order: in.Order, what: in.What, key: r.Header.Get("Idempotency-Key"), trace: r.Header.Get("Traceparent")}
	w.work(r.Context(), d, func() {
		if d.tool == "refuse" || d.tool == "flaky" && w.fails(d) {
			http.Error(rw, "it does not work", http.StatusUnprocessableEntity)
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]string{"kept": in.What})
	})
}

func (w *journalServer) count(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy += more
	w.busiest = max(w.busiest, w.busy)
}

// fails reports whether the call is the first one for what it is about.
func (w *journalServer) fails(d *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	about := d.order + d.what
	if w.failing[about] == "" {
		w.failing[about] = d.key
	}
	return w.failing[about] == d.key
}

// task is what a prompt has for the model. Say is what it says, as text or JSON; Better is that
// once it was told that it had not done well; Call is what it tells keep first, or the agent Hands
// works on the order first.
type task struct {
	Order  string          `json:"order"`
	Call   string          `json:"call"`
	Hands  string          `json:"hands"`
	Say    json.RawMessage `json:"say"`
	Better json.RawMessage `json:"better"`
}

var orderName = regexp.MustCompile(kit.Mark + `[A-Z0-9]{12}`)

// taskOf finds what a conversation has for the model. What has no script is thanked for.
func taskOf(messages []kit.ChatMessage) (s task, called bool) {
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
			s, called = task{}, false
			_ = json.Unmarshal([]byte(text), &s)
		} else if s.Better != nil {
			s.Say = s.Better
		}
	}
	if s.Say == nil {
		s.Order, s.Say = name, json.RawMessage(`"Thank you."`)
	}
	return s, called
}

// calls returns what the model calls first.
func (s task) calls() string {
	tool, arguments := "keep", fmt.Sprintf(`{"order":%q,"what":%q}`, s.Order, s.Call)
	if s.Hands != "" {
		tool, arguments = s.Hands, fmt.Sprintf(`{"task":%q}`, s.Order+" later")
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_same","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, kit.Quote(arguments))
}

func (w *journalServer) complete(rw http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []kit.ChatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	s, called := taskOf(req.Messages)
	var text string
	if json.Unmarshal(s.Say, &text) != nil {
		text = string(s.Say)
	}
	delta, reason := `{"content":`+kit.Quote(text)+`}`, "stop"
	if first := s.Call + s.Hands; first != "" && !called {
		delta, reason, text = s.calls(), "tool_calls", "call "+first
	}
	d := &request{tool: "model", order: s.Order, what: text, trace: r.Header.Get("Traceparent")}
	for _, m := range req.Messages {
		if m.Role == "user" {
			d.heard = append(d.heard, m.Text())
		}
	}
	w.work(r.Context(), d, func() {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []string{delta + `,"finish_reason":null`, `{},"finish_reason":"` + reason + `"`} {
			_, _ = fmt.Fprintf(rw, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"workshop\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", choice)
		}
		_, _ = fmt.Fprint(rw, "data: [DONE]\n\n")
	})
}
