package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// listedRetry returns what the index of threads says of a retry of the fixture's run.
func (f *fixture) listedRetry() *stream.Retrying {
	f.t.Helper()
	entry, err := f.log.Entry(f.t.Context(), run.Thread)
	if err != nil {
		f.t.Fatal(err)
	}
	if entry == nil {
		return nil
	}
	return entry.Retrying
}

// TestRunIsListedAsRetrying: while a failed model call is attempted again, the index of threads says
// why, and no longer afterwards.
func TestRunIsListedAsRetrying(t *testing.T) {
	t.Parallel()
	var f *fixture
	var during []*stream.Retrying
	f = setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		during = append(during, f.listedRetry())
		if n == 1 {
			return nil, &llm.Error{Code: llm.CodeUnavailable, Message: "secret text of the provider"}
		}
		return textAnswer("done")
	})
	_, result := f.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", len(during), 2)
	if during[0] != nil {
		t.Errorf("retry listed in the first attempt: got %+v, want none", during[0])
	}
	if r := during[1]; r == nil || r.Activity != runs.ActivityCallModel || r.Attempt != 1 || r.Error == "" || strings.Contains(r.Error, "secret") || r.Since.IsZero() {
		t.Errorf("retry listed in the second attempt: got %+v, want the model call, attempt 1 and its error", r)
	}
	if r := f.listedRetry(); r != nil {
		t.Errorf("retry listed after the end: got %+v, want none", r)
	}
}

// TestAttemptWithoutReportIsListed: an attempt that could not list why it failed, for instance
// because its worker was killed, is listed by the next attempt.
func TestAttemptWithoutReportIsListed(t *testing.T) {
	t.Parallel()
	var f *fixture
	var during *stream.Retrying
	calls := 0
	look := tools.Func("look", "looks", func(context.Context, struct{}) (string, error) {
		if calls++; calls == 1 {
			// The log seems to be unavailable, so this attempt lists nothing.
			return "", &tools.UnavailableError{Err: stream.ErrUnavailable}
		}
		during = f.listedRetry()
		return "seen", nil
	}, tools.Idempotent())
	f = setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n > 1 {
			return textAnswer("done")
		}
		return callAnswer([3]string{"1", "look", `{}`})
	}, look)
	_, result := f.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if during == nil || during.Attempt != 1 || during.Activity != runs.ActivityCallTool {
		t.Errorf("retry listed in the second attempt: got %+v, want attempt 1 of the tool call", during)
	}
}
