package models

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const limitedAgents = `name: limited
model: openai/gpt-5
instructions: You are under test.
---
name: paused
model: anthropic/claude-sonnet-5-5
instructions: You are under test.
`

// startLimited starts a cluster whose workers share a limit of two calls of openai, behind a gate. It has
// no worker yet.
func startLimited(t *testing.T, g *gate) (*kit.Cluster, *kit.API) {
	t.Helper()
	c := kit.NewCluster(t)
	c.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Agents, "all.yaml"), []byte(limitedAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Env = append(g.environ(), "PERDURE_MODEL_LIMITS=openai=2")
	c.StartServers(t)
	return c, c.StartAPI(t)
}

// TestWorkersShareModelLimits: two workers together make as many calls at once as the limit allows, also
// after one of them is killed with active calls: these end with its lease. A Retry-After that one of them
// has received holds the calls of both.
func TestWorkersShareModelLimits(t *testing.T) {
	t.Parallel()
	g := startGate(t)
	prompt, answer := kit.Marked("Say."), kit.Marked("Said.")
	kit.SharedModel.AnswerWith(t, prompt, answer)
	var mu sync.Mutex
	active, most := 0, 0
	full, thaw := make(chan struct{}), make(chan struct{}) // two calls are active; calls are answered
	g.on(prompt, func(_ http.ResponseWriter, r *http.Request, _ string, n int) bool {
		mu.Lock()
		active++
		most = max(most, active)
		mu.Unlock()
		defer func() {
			mu.Lock()
			active--
			mu.Unlock()
		}()
		if n == 2 {
			close(full)
		}
		select {
		case <-thaw:
			<-time.After(50 * time.Millisecond) // so that calls overlap
			return false
		case <-r.Context().Done():
			return true
		}
	})
	c, a := startLimited(t, g)
	killed := c.StartWorker(t)
	var followers []*kit.Follower
	start := func(n int) {
		for range n {
			followers = append(followers, a.FollowAgent(t, "/v1/agents/limited/runs", kit.NewInput(prompt)))
		}
	}
	start(2)
	await(t, full)
	c.StartWorker(t)
	start(4)
	awaitWaits(t, a.Endpoint, followers[2:])
	if n := len(g.with(prompt)); n != 2 {
		t.Errorf("requests while two calls are active = %d, want 2", n)
	}
	killed.Kill()
	close(thaw)
	for _, f := range followers {
		f.Finish(t)
		kit.WantOutcome(t, f, "success")
	}
	if n := len(g.with(prompt)); most != 2 || n != 8 {
		t.Errorf("requests at once = %d, in all = %d, want 2, and 8 of 6 runs, of which the killed worker made 2", most, n)
	}

	c.StartWorker(t)
	paused := kit.Marked("Wait.")
	kit.SharedModel.AnswerWith(t, paused, answer)
	var began []time.Time
	g.on(paused, func(w http.ResponseWriter, _ *http.Request, _ string, n int) bool {
		mu.Lock()
		defer mu.Unlock()
		began = append(began, time.Now())
		return n == 1 && refuse(w, 429, "3")
	})
	first := a.FollowAgent(t, "/v1/agents/paused/runs", kit.NewInput(paused))
	first.Until(t, hasBegun)
	awaitAttempts(t, a.Endpoint, first.In, 1)
	others := []*kit.Follower{first}
	for range 6 {
		others = append(others, a.FollowAgent(t, "/v1/agents/paused/runs", kit.NewInput(paused)))
	}
	for _, f := range others {
		f.Finish(t)
		kit.WantOutcome(t, f, "success")
	}
	for i, at := range began[1:] {
		if after := at.Sub(began[0]); after < 2900*time.Millisecond {
			t.Errorf("request %d after the Retry-After began after %s, want 3 s", i, after)
		}
	}
	if len(began) != 8 {
		t.Errorf("requests = %d, want the refused one, and one of each of 7 runs", len(began))
	}
}

// awaitWaits waits until the traces of all runs show that their model calls wait for a limit.
func awaitWaits(t *testing.T, p *kit.Endpoint, followers []*kit.Follower) {
	t.Helper()
	deadline := time.Now().Add(kit.WaitTimeout)
	for _, f := range followers {
		f.Until(t, hasBegun)
		for !waits(t, p, f.In) {
			if time.Now().After(deadline) {
				t.Fatal("no run waits for the limit of its provider")
			}
			<-time.After(10 * time.Millisecond) // poll interval
		}
	}
}

// hasBegun is true: the run of any event has begun.
func hasBegun(kit.Event) bool { return true }

// waits reports whether the model call of a run waits.
func waits(t *testing.T, p *kit.Endpoint, in kit.Input) bool {
	t.Helper()
	var trace struct {
		Spans []struct {
			Kind     string
			Attempts []struct {
				Wait *struct{ EndedAt string }
			}
		}
	}
	p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/trace", &trace)
	for _, s := range trace.Spans {
		for _, a := range s.Attempts {
			if strings.HasPrefix(s.Kind, "model") && a.Wait != nil && a.Wait.EndedAt == "" {
				return true
			}
		}
	}
	return false
}
