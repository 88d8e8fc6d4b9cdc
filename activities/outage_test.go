package activities_test

import (
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// What an outage of the log costs in attempts is not the step's fault: a model that fails once in a
// while behind a long one has all its chances left, and no more than those.
func TestAnOutageUsesNoAttemptsUp(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]runs.Outcome{7: runs.OutcomeSuccess, 8: runs.OutcomeError} {
		e := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n <= failures {
				return nil, &llm.Error{Code: llm.CodeUnavailable}
			}
			return say("at last")
		})
		e.outage.Store(20)
		if _, result := e.run("hello"); result.Outcome != want {
			t.Errorf("%d failures behind an outage: the run ends with %+v, want %s", failures, result, want)
		}
	}
}
