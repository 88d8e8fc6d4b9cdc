package console

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSystem: the page shows that the deployment is ready, its worker with its tools, and the
// quotas. A browser that requests an icon without naming it gets one.
func TestSystem(t *testing.T) {
	t.Parallel()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/system"))
	tab.Await("h1 + [data-status=ready]", "ready")
	tab.Await("table[aria-label=Workers]", "calculate")
	tab.Await("table[aria-label='Task queues'] >> [data-status=ready]", "has workers")
	tab.Await("table[aria-label=Quotas]", "streams")
	tab.WantAccessible()
	var icon string
	if tab.Evaluate(`fetch("/favicon.ico").then(({status, headers}) => status + " " + headers.get("Content-Type"))`, &icon); icon != "200 image/svg+xml" {
		t.Errorf("GET /favicon.ico: got %s, want the icon", icon)
	}
}

// TestModelsThatAreNotCalled: the page shows the open circuit of a model with its worker, and the pause
// that a provider has asked for. It has no such section before.
func TestModelsThatAreNotCalled(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusInternalServerError
		if strings.HasSuffix(r.URL.Path, "/messages") {
			w.Header().Set("Retry-After", "300")
			status = http.StatusTooManyRequests
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(provider.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	agents := "name: failing\nmodel: openai/gpt-5\ninstructions: Fail.\n---\nname: paused\nmodel: anthropic/claude-sonnet-4.5\ninstructions: Pause.\n"
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{"OPENAI_BASE_URL=" + provider.URL + "/v1", "ANTHROPIC_BASE_URL=" + provider.URL}
	p.InspectAtEnd(t)
	p.Start(t)
	tab := kit.OpenTab(t, p.URL("/console/system"))
	tab.Await("table[aria-label=Workers]", "")
	var sections int
	if tab.Evaluate(`document.querySelectorAll("#models").length`, &sections); sections != 0 {
		t.Error("the page has models that are not called before any call, want none")
	}
	runs := []*kit.Follower{p.FollowAgent(t, "/v1/agents/paused/runs", kit.NewInput(kit.Marked("Pause.")))}
	for range 10 {
		runs = append(runs, p.FollowAgent(t, "/v1/agents/failing/runs", kit.NewInput(kit.Marked("Fail."))))
	}
	tab.Await("table[aria-label='Models that are not called'] >> tr:has-text('openai/gpt-5') >> [data-status=failed]", "circuit open")
	paused := "table[aria-label='Models that are not called'] >> tr:has-text('claude-sonnet-4.5')"
	tab.Await(paused+" >> [data-status=paused]", "paused")
	tab.Await(paused, "ends in")
	tab.WantAccessible()
	for _, f := range runs {
		f.Until(t, func(kit.Event) bool { return true })
		p.Cancel(t, f.In)
		f.Finish(t)
	}
}
