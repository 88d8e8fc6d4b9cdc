package kit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// PausableModel is a model server that can pause at any token. The observed tools report to it,
// too. Its scripts record all invocations, with which tests compare the runs. It is safe for
// concurrent use.
type PausableModel struct {
	server *httptest.Server

	mu      sync.Mutex
	scripts map[string]*ModelScript // by id
}

// StartPausableModel starts a PausableModel that stops when the test ends.
func StartPausableModel(t *testing.T) *PausableModel {
	t.Helper()
	m := &PausableModel{scripts: map[string]*ModelScript{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	mux.HandleFunc("POST /tools/{tool}", m.useTool)
	m.server = httptest.NewServer(mux)
	t.Cleanup(m.server.Close)
	return m
}

// Environ returns the environment variables that make a process use the model.
func (m *PausableModel) Environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + m.server.URL + "/v1", "CHAOS_MODEL=" + m.server.URL}
}

// AddScript adds a script, which runs select by their prompt.
func (m *PausableModel) AddScript(script *ModelScript) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[script.id] = script
}

// find returns the script with an ID.
func (m *PausableModel) find(id string) *ModelScript {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scripts[id]
}

// scriptName matches the script's id in a user message.
var scriptName = regexp.MustCompile(`script:([A-Z0-9]+)`)

// complete answers a model call.
func (m *PausableModel) complete(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var req struct {
		Messages []ChatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, turn := "", 1
	for _, m := range req.Messages {
		if found := scriptName.FindStringSubmatch(m.Text()); m.Role == "user" && found != nil {
			id = found[1]
		}
		if m.Role == "tool" {
			turn = 2
		}
	}
	script := m.find(id)
	if script == nil {
		http.Error(w, "there is no such script", http.StatusNotFound)
		return
	}
	a := &completion{w: w, ctx: r.Context(), script: script, invocation: script.begin(turn, began)}
	a.stream()
}

// useTool answers a tool call.
func (m *PausableModel) useTool(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var in struct {
		Script string `json:"script"`
		Note   string `json:"note"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script := m.find(in.Script)
	if script == nil {
		http.Error(w, "there is no such script", http.StatusNotFound)
		return
	}
	inv := script.begin(TurnTool, began)
	script.update(func() {
		inv.Note, inv.Key = in.Note, r.Header.Get("Idempotency-Key")
		inv.Answer = fmt.Sprintf("%s effect %d", Mark, inv.attempt)
	})
	if !script.pause(r.Context(), inv, BeforeFirstChunk) {
		return
	}
	script.update(func() { inv.Finished = true })
	_, _ = w.Write([]byte(inv.Answer)) // a disconnected client is no error
}

// stream sends the chunks of the turn.
func (a *completion) stream() {
	if !a.wait(BeforeFirstChunk) {
		return
	}
	for i, script := range a.script.chunks(a.invocation.turn, a.invocation.attempt) {
		a.say(script)
		if !a.wait(i) {
			return
		}
	}
	a.end(map[int]string{1: "tool_calls", 2: "stop"}[a.invocation.turn])
}

// wait pauses and applies the fault at a position. It reports whether the completion continues.
func (a *completion) wait(at int) bool {
	if !a.script.pause(a.ctx, a.invocation, at) {
		return false
	}
	if a.script.Fault == nil || !a.script.pausesAt(a.invocation, at) {
		return true
	}
	return a.script.Fault(a)
}

// say sends a chunk and records it.
func (a *completion) say(script chunk) {
	a.script.update(func() { a.invocation.record(script) })
	a.Send(script.delta(), "null")
}

// end finishes the completion regularly.
func (a *completion) end(reason string) {
	a.script.update(func() { a.invocation.Finished = true })
	a.Send(`{}`, `"`+reason+`"`)
	a.write("data: [DONE]\n\n")
}

// Send sends one chunk in the form of the API.
func (a *completion) Send(delta, finish string) {
	a.write(`data: {"id":"chatcmpl-script","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n")
}

// write sends a text unchanged. A disconnected client is no error.
func (a *completion) write(text string) {
	if !a.started {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.started = true
	}
	_, _ = a.w.Write([]byte(text))
	_ = http.NewResponseController(a.w).Flush()
}

// Quote returns a text as a JSON string. Bytes that are not UTF-8 stay unchanged.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
