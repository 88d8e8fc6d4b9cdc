package agents

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestDraftSurvivesRestart: a run of a draft continues with the draft after the process was killed,
// and the next run has the current revision.
func TestDraftSurvivesRestart(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.InspectAtEnd(t)
	p.Start(t)
	definition := "name: demo\nmodel: scripted/demo\ninstructions: A draft.\ntools: [calculate, current_time]\n"
	resp, err := http.Post(p.URL("/v1/agents/demo/drafts"), "application/yaml", strings.NewReader(definition))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var draft struct{ Revision string }
	if err := json.Unmarshal(body, &draft); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("draft: %s %s, %v", resp.Status, body, err)
	}

	in := kit.NewInput(kit.Marked("What is 12*7, and what time is it?"))
	f := p.FollowAgent(t, "/v1/agents/demo/runs?revision="+draft.Revision, in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	p.Kill()
	p.Start(t)
	f.Finish(t)
	if started := string(f.Events[0].Data); !strings.Contains(started, draft.Revision) {
		t.Errorf("the run started as %s, want the revision %s", started, draft.Revision)
	}
	next := in.NextRun("next", "reject", kit.UserMessage("What is 1+1?"))
	if events := p.RunAgent(t, "/v1/agents/demo/runs", next); strings.Contains(string(events[0].Data), draft.Revision) {
		t.Errorf("the next run started as %s, want the current revision", events[0].Data)
	}
}
