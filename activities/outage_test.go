package activities_test

import (
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// TestOutageUsesNoAttempts: attempts that an outage of the log has cost do not count. A model
// that fails after a long outage still has all its attempts, and no more.
func TestOutageUsesNoAttempts(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]runs.Outcome{7: runs.OutcomeSuccess, 8: runs.OutcomeError} {
		fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n <= failures {
				return nil, &llm.Error{Code: llm.CodeUnavailable}
			}
			return textAnswer("at last")
		})
		fixture.outage.Store(20)
		if _, result := fixture.run("hello"); result.Outcome != want {
			t.Errorf("%d failures after an outage: got %+v, want %s", failures, result, want)
		}
	}
}
