package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestRunAfterLastEventID: the same input with the ID of an event continues its run after that event,
// and never starts one.
func TestRunAfterLastEventID(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	whole := node.post(inputOf("r1", "hello"))
	all := cursors(whole.body)
	post := func(run, cursor string) answer {
		body, err := json.Marshal(inputOf(run, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		return node.do(http.MethodPost, "/v1/agents/a/runs", string(body), "Last-Event-ID", cursor)
	}
	for i, cursor := range all {
		a := post("r1", cursor)
		if i == len(all)-1 {
			wantEqual(t, "status after the last event", a.status, http.StatusNoContent)
			continue
		}
		if got := cursors(a.body); a.status != http.StatusOK || !slices.Equal(got, all[i+1:]) {
			t.Errorf("after event %d: got %d %q, want %q", i, a.status, got, all[i+1:])
		}
	}
	for cursor, want := range map[string]string{all[0]: "404 unknown_run", "nonsense": "400 invalid_cursor"} {
		a := post("r2", cursor)
		if got := fmt.Sprint(a.status, " ", a.problem.Code); got != want {
			t.Errorf("a run that has not begun, after %s: got %s, want %s", cursor, got, want)
		}
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/runs/r2/events", ""); a.status != http.StatusNotFound {
		t.Errorf("a run that was refused: got %d, want 404", a.status)
	}
}
