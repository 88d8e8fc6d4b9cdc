package workflows_test

import (
	"context"
	"log/slog"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/internal/temporaltest"
)

// newEnvironment returns an environment that checks the transitions of runs.
func newEnvironment(t testing.TB) *testsuite.TestWorkflowEnvironment {
	return temporaltest.NewEnvironment(transitions{slog.DiscardHandler, t})
}

// transitions fails the test when a run takes a transition that the table of phases does not have.
type transitions struct {
	slog.Handler
	t testing.TB
}

func (transitions) Enabled(context.Context, slog.Level) bool { return true }

func (h transitions) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h transitions) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "invalid phase transition" {
		r.Attrs(func(a slog.Attr) bool { h.t.Errorf("%s: %s", r.Message, a); return true })
	}
	return nil
}
