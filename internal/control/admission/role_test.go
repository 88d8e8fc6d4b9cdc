package admission

import (
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRolesSuffice: with the deployed configuration of NATS, workers write the state of models, and the
// API reads it.
func TestRolesSuffice(t *testing.T) {
	t.Parallel()
	roles := streamtest.WithRoles(t)
	api := roles.OpenAs(t, "perdure-api")
	g, err := Open(t.Context(), roles.OpenAs(t, "perdure-worker"), "a", Limits{"p": {Calls: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	admit(t, g).End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute})
	await(t, api, func(s State) bool { return len(s.Pauses) == 1 })
}
