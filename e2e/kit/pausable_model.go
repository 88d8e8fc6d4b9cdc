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

// PausableModel is a model server that can be stopped in the middle of a word, and the place that
// watched tools report to. It knows what each run was told and did: its journal is what runs are
// held against. It is safe for concurrent use.
type PausableModel struct {
	server *httptest.Server

	mu    sync.Mutex
	plays map[string]*ModelScript
}

func StartPausableModel(t *testing.T) *PausableModel {
	t.Helper()
	s := &PausableModel{plays: map[string]*ModelScript{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /tools/{tool}", s.useTool)
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	return s
}

// Environ tells a process to use the stage.
func (s *PausableModel) Environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + s.server.URL + "/v1", "CHAOS_STAGE=" + s.server.URL}
}

func (s *PausableModel) Add(p *ModelScript) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays[p.id] = p
}

func (s *PausableModel) find(id string) *ModelScript {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plays[id]
}

// scriptName finds the play's id in what a user says.
var scriptName = regexp.MustCompile(`play:([A-Z0-9]+)`)

func (s *PausableModel) complete(w http.ResponseWriter, r *http.Request) {
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
	p := s.find(id)
	if p == nil {
		http.Error(w, "there is no such play", http.StatusNotFound)
		return
	}
	a := &completion{w: w, ctx: r.Context(), play: p, pf: p.begin(turn, began)}
	a.perform()
}

func (s *PausableModel) useTool(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var in struct {
		Play string `json:"play"`
		Note string `json:"note"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := s.find(in.Play)
	if p == nil {
		http.Error(w, "there is no such play", http.StatusNotFound)
		return
	}
	pf := p.begin(TurnTool, began)
	p.note(func() {
		pf.Note, pf.Key = in.Note, r.Header.Get("Idempotency-Key")
		pf.Answer = fmt.Sprintf("%s effect %d", Mark, pf.attempt)
	})
	if !p.pause(r.Context(), pf, Asked) {
		return
	}
	p.note(func() { pf.Finished = true })
	_, _ = w.Write([]byte(pf.Answer)) // a caller that is gone needs no answer
}

// perform says the turn's pieces one by one.
func (a *completion) perform() {
	if !a.wait(Asked) {
		return
	}
	for i, p := range a.play.script(a.pf.turn, a.pf.attempt) {
		a.say(p)
		if !a.wait(i) {
			return
		}
	}
	a.end(map[int]string{1: "tool_calls", 2: "stop"}[a.pf.turn])
}

// wait keeps the play's pause, and its flaw, if they are here. It tells whether to go on.
func (a *completion) wait(at int) bool {
	if !a.play.pause(a.ctx, a.pf, at) {
		return false
	}
	if a.play.Flaw == nil || !a.play.strikes(a.pf, at) {
		return true
	}
	return a.play.Flaw(a)
}

// say sends a piece and notes that it was said.
func (a *completion) say(p chunk) {
	a.play.note(func() { a.pf.hear(p) })
	a.Send(p.delta(), "null")
}

// end finishes the completion regularly.
func (a *completion) end(reason string) {
	a.play.note(func() { a.pf.Finished = true })
	a.Send(`{}`, `"`+reason+`"`)
	a.write("data: [DONE]\n\n")
}

func (a *completion) Send(delta, finish string) {
	a.write(`data: {"id":"chatcmpl-stage","object":"chat.completion.chunk","created":1,"model":"stage","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n")
}

// write sends as it is. Who hung up hears nothing, which is no matter here.
func (a *completion) write(text string) {
	if !a.begun {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.begun = true
	}
	_, _ = a.w.Write([]byte(text))
	_ = http.NewResponseController(a.w).Flush()
}

// Quote is JSON's form of a text, but for what is not UTF-8, which stays as it is.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
