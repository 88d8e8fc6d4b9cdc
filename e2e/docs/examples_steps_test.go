package docs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestExampleReport: the report example has the same outcome with and without kills.
func TestExampleReport(t *testing.T) {
	t.Parallel()
	p := kit.StartExample(t, "report", "bin/library", kit.BuildExample(t, "research/library"))
	checkReport(t, p.Endpoint, 4, p.Restart)
	p.CheckRecordedRuns(t, "report")
}

// checkReport checks the run of the example report. It calls restart at the end, and before that at
// most kills times.
func checkReport(t *testing.T, p *kit.Endpoint, kills int, restart func(*testing.T)) {
	t.Helper()
	const runs = "/v1/agents/report/runs"
	calm := kit.NewInput("tea")
	f := p.FollowAgent(t, runs, calm)
	f.Finish(t)
	f.Approve(t)
	want := p.StateOf(t, calm)
	if text, _ := want["published"].(string); !strings.HasPrefix(text, "Draft 2 (too short): Tea turns bitter") {
		t.Errorf("published text = %q, want the second draft", text)
	}
	killed := kit.NewInput("tea")
	f = p.FollowAgent(t, runs, killed)
	steps := []string{"plan/model", "notes", "critique/review/model", "sign_off"}
	for _, step := range steps[:min(kills, len(steps))] {
		f.Until(t, func(e kit.Event) bool { return e.Type == "STEP_STARTED" && e.Member("stepName") == step })
		restart(t)
	}
	f.Finish(t)
	restart(t)
	f.Approve(t)
	if got := p.StateOf(t, killed); !reflect.DeepEqual(got, want) {
		t.Errorf("outcome with a kill: got %v, want %v", got, want)
	}
}
