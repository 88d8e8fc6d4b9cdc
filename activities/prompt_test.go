package activities_test

import (
	"context"
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// TestResultsHaveOrderOfCalls: tools may finish in the reverse order of their
// calls. Clients see the results as they arrive, and the conversation keeps that order. The model
// gets them in the order of the calls.
func TestResultsHaveOrderOfCalls(t *testing.T) {
	t.Parallel()
	var f *fixture
	type after struct {
		Results int `json:"results"`
	}
	wait := tools.Func("wait", "waits", func(ctx context.Context, in after) (int, error) {
		f.awaitResults(ctx, in.Results)
		return in.Results, nil
	})
	var sent []string
	f = setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"call_x", "wait", `{"results":2}`}, [3]string{"call_y", "wait", `{"results":1}`}, [3]string{"call_z", "wait", `{"results":0}`})
		}
		for _, m := range req.Messages {
			if m.Role == llm.RoleTool {
				sent = append(sent, m.ToolCallID+"="+m.Text())
			}
		}
		return textAnswer("done")
	}, wait)
	events, result := f.run("wait")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if want := []string{"call_x=2", "call_y=1", "call_z=0"}; !slices.Equal(sent, want) {
		t.Errorf("results sent: got %q, want %q", sent, want)
	}
	var shown, kept []string
	for _, event := range events {
		if r, ok := event.(*agui.ToolCallResult); ok {
			shown = append(shown, r.Content.Text())
		}
	}
	for _, m := range f.conversation() {
		if m.Role == agui.RoleTool {
			kept = append(kept, m.Content.Text())
		}
	}
	if want := []string{"0", "1", "2"}; !slices.Equal(shown, want) || !slices.Equal(kept, want) {
		t.Errorf("results: got %q at clients and %q in the conversation, want %q", shown, kept, want)
	}
}
