package activities_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// reportedFailures returns the failures that the attempts of the run have reported.
func (f *fixture) reportedFailures() (failures []stream.Failure) {
	f.t.Helper()
	subject := f.log.RunSubject(run) + ".>"
	last, err := f.log.Last(f.t.Context(), subject)
	if err != nil {
		f.t.Fatal(err)
	}
	for rec, err := range f.log.Records(f.t.Context(), subject, 1, last.Seq) {
		if err != nil {
			f.t.Fatal(err)
		}
		failed, _, err := rec.AttemptNote(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if failed != nil {
			failures = append(failures, *failed)
		}
	}
	return failures
}

// TestFailedAttemptsReportWhy: an attempt that fails writes its code and its texts for readers, and
// nothing else that it knows. Attempts that succeed write none.
func TestFailedAttemptsReportWhy(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{0, 2} {
		calls := 0
		shop := tools.Func("shop", "sells", func(context.Context, pair) (string, error) {
			if calls++; calls <= fails {
				return "", &tools.UnavailableError{Text: "The shop is closed.", RetryAfter: time.Second, Err: errors.New("SECRET PROMPT")}
			}
			return "open", nil
		}, tools.Idempotent())
		modelCalls := 0
		fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
			if modelCalls++; modelCalls <= fails {
				return nil, &llm.Error{Code: llm.CodeRateLimited, Status: 429, Message: "slow down", RetryAfter: time.Second, Hint: "buy more", Err: errors.New("SECRET PROMPT")}
			}
			if modelCalls == fails+1 {
				return callAnswer([3]string{"x", "shop", `{"a":1,"b":2}`})
			}
			return textAnswer("done")
		}, shop)
		if _, result := fixture.run("buy"); result.Outcome != runs.OutcomeSuccess {
			t.Fatalf("run = %+v, want a success", result)
		}
		failures := fixture.reportedFailures()
		if len(failures) != 2*fails {
			t.Fatalf("failures = %+v, want %d of the model and %d of the tool", failures, fails, fails)
		}
		for i, failure := range failures {
			want := stream.Failure{Code: "rate_limited", Detail: "slow down", Hint: "buy more"}
			if i >= fails {
				want = stream.Failure{Code: "tool_unavailable", Detail: "The shop is closed."}
			}
			if failure.Code != want.Code || failure.Detail != want.Detail || failure.Hint != want.Hint || failure.Final || failure.Pause != time.Second || strings.Contains(failure.Message, "SECRET") {
				t.Errorf("failure %d = %+v, want %+v with a pause of a second and no secret", i, failure, want)
			}
		}
	}
}
