package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
)

// TestRunHasResult: the route of a run has the result of its last event, and lists of runs do not.
func TestRunHasResult(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error {
		_, _, err := node.log.Seal(node.ctx(), node.begin(in, "e"), &agui.RunFinished{ThreadID: in.Run.Thread, RunID: in.Run.ID, Result: json.RawMessage(`{"n":7}`)})
		return err
	}
	node.post(inputOf("r1", "go"))
	for path, want := range map[string]string{
		"/v1/threads/t/runs/r1":    `"result":{"n":7}`,
		"/v1/threads/t/runs/r9":    `"code":"unknown_run"`,
		"/v1/threads/none/runs/r1": `"code":"unknown_run"`,
	} {
		if a := node.do(http.MethodGet, path, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s: got %d %s, want %s", path, a.status, a.body, want)
		}
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/runs", ""); a.status != http.StatusOK || strings.Contains(a.body, "result") {
		t.Errorf("runs: got %d %s, want no result", a.status, a.body)
	}
}
