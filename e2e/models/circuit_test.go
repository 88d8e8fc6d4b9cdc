package models

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
)

const failingAgents = `name: failing
model: openai/gpt-5
instructions: You are under test.
---
name: paused
model: anthropic/claude-sonnet-4.5
instructions: You are under test.
`

// TestOpenCircuitIsShown: while calls of a model fail, the state of the system and the command show its
// open circuit with the worker, and then the half-open one. When the model answers, both are gone. A
// pause that a provider has asked for is shown with the model.
func TestOpenCircuitIsShown(t *testing.T) {
	t.Parallel()
	g := startGate(t)
	prompt, paused := kit.Marked("Fail."), kit.Marked("Pause.")
	kit.SharedModel.AnswerWith(t, prompt, kit.Marked("Done."))
	var answers atomic.Bool
	g.on(prompt, func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		return !answers.Load() && refuse(w, 500, "")
	})
	g.on(paused, func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool { return refuse(w, 429, "300") })
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(failingAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = g.environ()
	p.InspectAtEnd(t)
	p.Start(t)
	if s := awaitModels(t, p, func(client.System) bool { return true }); len(s.Models)+len(s.Providers) != 0 {
		t.Errorf("models before any call = %+v, providers = %+v, want none", s.Models, s.Providers)
	}
	var followers []*kit.Follower
	for range 10 {
		followers = append(followers, p.FollowAgent(t, "/v1/agents/failing/runs", kit.NewInput(prompt)))
	}
	before := time.Now()
	s := awaitModels(t, p, func(s client.System) bool { return len(s.Models) == 1 })
	m := s.Models[0]
	if len(m.Circuits) != 1 || m.Model != "openai/gpt-5" || !m.PausedUntil.IsZero() {
		t.Fatalf("models = %+v, want the open circuit of openai/gpt-5", s.Models)
	}
	if c := m.Circuits[0]; c.State != "open" || c.Worker != s.Workers[0].Name || c.Since.Before(before.Add(-kit.WaitTimeout)) || c.Since.After(time.Now()) {
		t.Errorf("circuit = %+v, want one of the worker %s that is open since a moment", c, s.Workers[0].Name)
	}
	if out := p.StartCommand(t, "system").Finish(t, 0); !strings.Contains(out, "circuit open in "+s.Workers[0].Name+", opened ") {
		t.Errorf("perdure system: %s, want the open circuit", out)
	}

	waits := p.FollowAgent(t, "/v1/agents/paused/runs", kit.NewInput(paused))
	s = awaitModels(t, p, func(s client.System) bool { return len(s.Models) == 2 })
	if m := s.Models[0]; m.Model != "anthropic/claude-sonnet-4.5" || len(m.Circuits) != 0 || time.Until(m.PausedUntil) < 4*time.Minute || time.Until(m.PausedUntil) > 5*time.Minute {
		t.Errorf("paused model = %+v, want claude-sonnet-4.5 for 5 minutes", m)
	}
	if out := p.StartCommand(t, "system").Finish(t, 0); !strings.Contains(out, "anthropic/claude-sonnet-4.5") || !strings.Contains(out, "paused by its provider for ") {
		t.Errorf("perdure system: %s, want the pause", out)
	}

	answers.Store(true)
	s = awaitModels(t, p, func(s client.System) bool { return len(s.Models) == 1 })
	if s.Models[0].Model != "anthropic/claude-sonnet-4.5" {
		t.Errorf("models = %+v, want only the paused one after the other has answered", s.Models)
	}
	for _, f := range followers {
		f.Finish(t)
		kit.WantOutcome(t, f, "success")
	}
	waits.Until(t, hasBegun)
	if status := p.Cancel(t, waits.In); status >= http.StatusBadRequest {
		t.Errorf("cancel of the paused run: %d", status)
	}
	waits.Finish(t)
}

// awaitModels reads the state of the system until it has a property.
func awaitModels(t *testing.T, p *kit.Perdure, has func(client.System) bool) client.System {
	t.Helper()
	deadline := time.Now().Add(kit.WaitTimeout)
	for {
		var body json.RawMessage
		p.GetJSON(t, "/v1/system", &body)
		var s client.System
		if err := json.Unmarshal(body, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Workers) == 1 && has(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("system = %s, want other models", body)
		}
		<-time.After(50 * time.Millisecond) // poll interval
	}
}
