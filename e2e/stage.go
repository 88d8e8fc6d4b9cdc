package e2e

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

// stage is a model server that can be stopped in the middle of a word, and the place that watched
// tools report to. It knows what each run was told and did: its journal is what runs are held
// against. It is safe for concurrent use.
type stage struct {
	server *httptest.Server

	mu    sync.Mutex
	plays map[string]*play
}

func openStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{plays: map[string]*play{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /tools/{tool}", s.useTool)
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	return s
}

// environ tells a process to use the stage.
func (s *stage) environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + s.server.URL + "/v1", "CHAOS_STAGE=" + s.server.URL}
}

func (s *stage) add(p *play) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays[p.id] = p
}

func (s *stage) find(id string) *play {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plays[id]
}

// playName finds the play's id in what a user says.
var playName = regexp.MustCompile(`play:([A-Z0-9]+)`)

func (s *stage) complete(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var req struct {
		Messages []chatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, turn := "", 1
	for _, m := range req.Messages {
		if found := playName.FindStringSubmatch(m.text()); m.Role == "user" && found != nil {
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
	a := &speech{w: w, ctx: r.Context(), play: p, pf: p.begin(turn, began)}
	a.perform()
}

func (s *stage) useTool(w http.ResponseWriter, r *http.Request) {
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
	pf := p.begin(turnTool, began)
	p.note(func() {
		pf.note, pf.key = in.Note, r.Header.Get("Idempotency-Key")
		pf.answer = fmt.Sprintf("%s effect %d", mark, pf.attempt)
	})
	if !p.pause(r.Context(), pf, asked) {
		return
	}
	p.note(func() { pf.finished = true })
	_, _ = w.Write([]byte(pf.answer)) // a caller that is gone needs no answer
}

// perform says the turn's pieces one by one.
func (a *speech) perform() {
	if !a.wait(asked) {
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
func (a *speech) wait(at int) bool {
	if !a.play.pause(a.ctx, a.pf, at) {
		return false
	}
	if a.play.flaw == nil || !a.play.strikes(a.pf, at) {
		return true
	}
	return a.play.flaw(a)
}

// say sends a piece and notes that it was said.
func (a *speech) say(p piece) {
	a.play.note(func() { a.pf.hear(p) })
	a.send(p.delta(), "null")
}

// end finishes the completion regularly.
func (a *speech) end(reason string) {
	a.play.note(func() { a.pf.finished = true })
	a.send(`{}`, `"`+reason+`"`)
	a.write("data: [DONE]\n\n")
}

func (a *speech) send(delta, finish string) {
	a.write(`data: {"id":"chatcmpl-stage","object":"chat.completion.chunk","created":1,"model":"stage","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n")
}

// write sends as it is. Who hung up hears nothing, which is no matter here.
func (a *speech) write(text string) {
	if !a.begun {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.begun = true
	}
	_, _ = a.w.Write([]byte(text))
	_ = http.NewResponseController(a.w).Flush()
}

// quote is JSON's form of a text, but for what is not UTF-8, which stays as it is.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
