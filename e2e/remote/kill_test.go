package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestKilledWorker: what happens to a run whose worker dies or stops in mid-stream is what the key
// retry says.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*testing.T, *kit.Perdure){
		"killed": func(_ *testing.T, p *kit.Perdure) { p.Kill() },
		"stopped": func(t *testing.T, p *kit.Perdure) {
			t.Helper()
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startFlakyServer(t)
			var definitions []string
			for _, retry := range retries {
				definitions = append(definitions, fmt.Sprintf("name: %s\nremote: {url: \"%s/%s\", retry: %s}\n", retry, s.URL, retry, retry))
				s.handle("/"+retry, func(e *exchange) {
					if e.n > 1 {
						e.finish()
						return
					}
					e.begin()
					<-e.r.Context().Done()
				})
			}
			p := startWith(t, strings.Join(definitions, "---\n"))
			var all []*kit.Follower
			for _, retry := range retries {
				f := p.FollowAgent(t, "/v1/agents/"+retry+"/runs", kit.NewInput(kit.Marked("Are you there?")))
				f.UntilContent(t, 2)
				all = append(all, f)
			}
			end(t, p)
			p.Start(t)
			for i, retry := range retries {
				all[i].Finish(t)
				wantAfterDeath(t, p, all[i], retry, s)
			}
		})
	}
}

// wantAfterDeath checks a run after the death of its worker in mid-stream.
func wantAfterDeath(t *testing.T, p *kit.Perdure, f *kit.Follower, retry string, s *flakyServer) {
	t.Helper()
	requests := s.received("/" + retry)
	if want := map[string]int{"never": 1, "restart": 2, "resume": 2}[retry]; len(requests) != want {
		t.Fatalf("%s: %d requests, want %d", retry, len(requests), want)
	}
	messages, state := f.In.Messages, map[string]any{}
	switch retry {
	case "never":
		failure{code: "remote_connection_broken", message: []string{"the worker ended during the run"}}.wantError(t, f.Events[len(f.Events)-1])
	case "restart":
		messages, state = wantRun(f.In, 2)
	case "resume":
		messages, state = wantRun(f.In, 1)
		if requests[1].Header.Get("Last-Event-ID") == "" {
			t.Error("the second request has no Last-Event-ID")
		}
	}
	wantThread(t, p, f, messages, state)
}
