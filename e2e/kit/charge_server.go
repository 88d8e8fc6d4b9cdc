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

// ChargeServer is the HTTP server of the tool charge. The tool is not idempotent: the server
// records each request. It is safe for concurrent use.
type ChargeServer struct {
	server *httptest.Server

	mu      sync.Mutex
	charges map[string][]charge // by note
}

// charge is one request to the server.
type charge struct {
	Note   string `json:"note"`
	Amount int    `json:"amount"`
	key    string // Idempotency-Key
}

// cashier is an agent whose tool charge needs approval, and the tool.
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

// StartChargeServer starts a ChargeServer that stops when the test ends.
func StartChargeServer(t *testing.T) *ChargeServer {
	t.Helper()
	s := &ChargeServer{charges: map[string][]charge{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// Agents returns a directory with the definitions of the agent cashier and its tool.
func (s *ChargeServer) Agents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cashier.yaml"), fmt.Appendf(nil, cashier, s.server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ServeHTTP records a charge.
func (s *ChargeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.key = r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charges[c.Note] = append(s.charges[c.Note], c)
	_, _ = fmt.Fprintf(w, "charged %d", c.Amount)
}

// Charges returns the charges with a note.
func (s *ChargeServer) Charges(note string) []charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.charges[note]
}
