package e2e

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// stateOf returns a thread's state.
func (p *endpoint) stateOf(t *testing.T, in input) map[string]any {
	t.Helper()
	resp, err := p.get(t.Context(), "/v1/threads/"+in.ThreadID+"/state", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var read struct {
		State map[string]any `json:"state"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&read); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d: %v", resp.StatusCode, err)
	}
	return read.State
}

// approve approves the one question of a thread that a follower has read to its end, and reads on
// to the end of what goes on with it.
func (f *follower) approve(t *testing.T) {
	t.Helper()
	asked := interruptsOf(t, f.events)
	if len(asked) != 1 {
		t.Fatalf("it asks %+v", asked)
	}
	if status, a := decide(t, f.p, f.in.ThreadID, asked[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: %d %v", status, a)
	}
	f.view = "/v1/threads/" + f.in.ThreadID + "/events"
	f.untilSuccess(t)
}

// restart kills the process, and starts it again.
func (p *perdure) restart(t *testing.T) {
	t.Helper()
	p.kill()
	p.start(t)
}

// The report example comes to the same whether it is killed at some of its steps or not.
func TestExampleReport(t *testing.T) {
	t.Parallel()
	p := startExample(t, "report", "bin/library", buildExample(t, "research/library"))
	checkReport(t, p.endpoint, p.restart)
	p.checkRecorded(t, "report")
}

func checkReport(t *testing.T, p *endpoint, restart func(*testing.T)) {
	t.Helper()
	const runs = "/v1/agents/report/runs"
	calm := newInput("tea")
	f := p.followAgent(t, runs, calm)
	f.finish(t)
	f.approve(t)
	want := p.stateOf(t, calm)
	if text, _ := want["published"].(string); !strings.HasPrefix(text, "Draft 2 (too short): Tea turns bitter") {
		t.Errorf("it has published %q", text)
	}
	killed := newInput("tea")
	f = p.followAgent(t, runs, killed)
	for _, step := range []string{"plan/model", "notes", "critique/review/model", "sign_off"} {
		f.until(t, func(e event) bool { return e.Type == "STEP_STARTED" && e.member("stepName") == step })
		restart(t)
	}
	f.finish(t)
	restart(t)
	f.approve(t)
	if got := p.stateOf(t, killed); !reflect.DeepEqual(got, want) {
		t.Errorf("killed it comes to %v, else to %v", got, want)
	}
}
