package activities_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/stream"
)

// TestFinalWriteWaitsForTheLog: the final records of a step wait for the log as long as the step may
// last, and for seconds after that.
func TestFinalWriteWaitsForTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last, done := activities.ContextAfter(ctx)
		defer done()
		<-time.After(time.Hour)
		if last.Err() != nil {
			t.Fatalf("during the step: got the end %v, want none", context.Cause(last))
		}
		cancel()
		<-time.After(9 * time.Second)
		if last.Err() != nil {
			t.Fatalf("9 s after the step: got the end %v, want none", context.Cause(last))
		}
		<-time.After(2 * time.Second)
		if !errors.Is(context.Cause(last), stream.ErrUnavailable) {
			t.Errorf("11 s after the step: got %v, want ErrUnavailable", context.Cause(last))
		}
	})
}
