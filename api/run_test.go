package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// TestRunHasResult: the route of a run has the result of its last event, also null, and lists of runs do
// not have it.
func TestRunHasResult(t *testing.T) {
	t.Parallel()
	node := setup(t)
	results := map[string]json.RawMessage{"r1": json.RawMessage(`{"n":7}`), "r2": json.RawMessage("null"), "r3": nil}
	node.temporal.start = func(in runs.Input) error {
		end := &agui.RunFinished{ThreadID: in.Run.Thread, RunID: in.Run.ID}
		stream.SetResult(end, results[in.Run.ID])
		_, _, err := node.log.Seal(node.ctx(), node.begin(in, "e"), end)
		return err
	}
	for _, run := range []string{"r1", "r2", "r3"} {
		in := inputOf(run, "go")
		in.ForwardedProps = json.RawMessage(`{"perdure":{"history":"append"}}`)
		node.post(in)
	}
	for path, want := range map[string]string{
		"/v1/threads/t/runs/r1":    `"result":{"n":7}`,
		"/v1/threads/t/runs/r2":    `"result":null`,
		"/v1/threads/t/runs/r9":    `"code":"unknown_run"`,
		"/v1/threads/none/runs/r1": `"code":"unknown_run"`,
	} {
		if a := node.do(http.MethodGet, path, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s: got %d %s, want %s", path, a.status, a.body, want)
		}
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/runs/r3", ""); a.status != http.StatusOK || strings.Contains(a.body, "result") {
		t.Errorf("a run without a result: got %d %s, want no result", a.status, a.body)
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/runs", ""); a.status != http.StatusOK || strings.Contains(a.body, "result") {
		t.Errorf("runs: got %d %s, want no result", a.status, a.body)
	}
}
