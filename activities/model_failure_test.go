package activities_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

// TestLoggedModelFailures: the log has the bound of failures only if a failure is of a kind that is
// attempted again.
func TestLoggedModelFailures(t *testing.T) {
	t.Parallel()
	for code, want := range map[llm.Code]string{llm.CodeUnauthorized: `"failures":"1"`, llm.CodeUnavailable: `"failures":"1 of 8"`} {
		fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return nil, &llm.Error{Code: code}
			}
			return textAnswer("done")
		})
		fixture.run("hello")
		log := fixture.logged.String()
		if !strings.Contains(log, want) {
			t.Errorf("%s: log = %q, want text with %q", code, log, want)
		}
	}
}
