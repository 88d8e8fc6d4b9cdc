package kit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// ChargeServer is a shop's till, which takes money as often as it is told to, and keeps what it was
// told. It is safe for concurrent use.
type ChargeServer struct {
	server *httptest.Server

	mu    sync.Mutex
	taken map[string][]charge // by note
}

// charge is one request that the till had.
type charge struct {
	Note   string `json:"note"`
	Amount int    `json:"amount"`
	key    string // of its idempotency
}

// cashier is an agent that asks before it charges, and its tool.
const cashier = `name: cashier
model: openai/scripted-by-the-test
tools: [charge]
approvals: [{tools: [charge]}]
limits: {parallelTools: 10}
---
kind: tool
name: charge
description: Takes money. Twice, if it is called twice.
parameters: {type: object, required: [note, amount], properties: {note: {type: string}, amount: {type: integer}}}
http: {method: POST, url: "%s/charges"}
`

func StartChargeServer(t *testing.T) *ChargeServer {
	t.Helper()
	s := &ChargeServer{taken: map[string][]charge{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// Folder returns a folder of agents that has the cashier.
func (s *ChargeServer) Folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cashier.yaml"), fmt.Appendf(nil, cashier, s.server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s *ChargeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.key = r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[c.Note] = append(s.taken[c.Note], c)
	_, _ = fmt.Fprintf(w, "charged %d", c.Amount)
}

// Charges returns what was charged under a note.
func (s *ChargeServer) Charges(note string) []charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[note]
}
