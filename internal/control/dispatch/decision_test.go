package dispatch_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
)

// TestDecideKeepsResults: of several decisions, only those are sent again that a workflow does not know yet
// although the log has them. The others keep their first results: a repetition would be reported as one.
func TestDecideKeepsResults(t *testing.T) {
	t.Parallel()
	decisions := []runs.Decision{{CallID: "taken"}, {CallID: "unread"}, {CallID: "unknown"}}
	var sent []string
	update := func(in runs.DecideRequest, out *runs.DecideResult) error {
		round := ""
		for _, d := range in.Decisions {
			round += d.CallID + " "
			result := runs.DecisionResult{Error: runs.ErrorUnknownCall}
			if d.CallID == "taken" || d.CallID == "unread" && len(sent) == 2 {
				result = runs.DecisionResult{Missing: len(sent)}
			}
			out.Results = append(out.Results, result)
		}
		sent = append(sent, round)
		return nil
	}
	isOpen := func(d runs.Decision) (bool, error) { return d.CallID == "unread", nil }
	got, err := dispatch.Decide(decisions, update, isOpen)
	if err != nil {
		t.Fatal(err)
	}
	if want := "[taken unread unknown  unread  unread ]"; fmt.Sprint(sent) != want {
		t.Errorf("sent %v, want %s", sent, want)
	}
	if r := got.Results; r[0].Missing != 0 || r[0].Error != "" || r[1].Error != "" || r[1].Missing != 2 || r[2].Error != runs.ErrorUnknownCall {
		t.Errorf("results = %+v, want those of the rounds 1 and 3, and an unknown call", r)
	}
}
