package activities_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// usageOfToday returns the report of all runs that have ended today or yesterday, without their
// durations.
func (f *fixture) usageOfToday() []usage.Item {
	f.t.Helper()
	today := time.Now().UTC()
	items, err := f.acts.Usage.Report(f.t.Context(), usage.Query{From: today.AddDate(0, 0, -1), To: today, GroupBy: []usage.Group{usage.ByTenant, usage.ByAgent, usage.ByModel}})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range items {
		if items[i].Seconds < 0 || items[i].Seconds > 60 {
			f.t.Errorf("seconds of a run = %v, want those since its begin", items[i].Seconds)
		}
		items[i].Seconds = 0
	}
	return items
}

// TestRunIsCountedOnce: a run counts for the report of usage once, even if the attempt that ended it
// dies before or after it has counted it, and another attempt follows.
func TestRunIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, diesBefore := range map[string]bool{"death before the count": true, "death after the count": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
			f.acts.Prices = prices(t)
			ledger, err := usage.Open(t.Context(), f.log)
			if err != nil {
				t.Fatal(err)
			}
			if !diesBefore {
				f.acts.Usage = ledger
			}
			f.run("hello")
			f.acts.Usage = ledger
			input, output, cost := int64(10), int64(2), int64(20)
			again := runs.FinishInput{
				Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Agent: "a", Execution: "e", After: 1, Outcome: runs.OutcomeError,
				Usage: []runs.Usage{{Provider: "test", Model: "m", Input: &input, Output: &output, Cost: &cost}},
			}
			for range 2 {
				if _, err := f.finish(again); err != nil {
					t.Fatal(err)
				}
			}
			// The terminal record says how the run ended.
			want := []usage.Item{{
				Tenant: "default", Agent: "a", Model: "test/m", Runs: 1, InputTokens: 10, OutputTokens: 2, TotalTokens: 12,
				Cost: &usage.Cost{Amount: 20, Currency: f.acts.Prices.Currency},
			}}
			if diff := cmp.Diff(want, f.usageOfToday()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunEndsWithoutLedger: a run ends although it cannot be counted. The log of the worker tells it.
func TestRunEndsWithoutLedger(t *testing.T) {
	t.Parallel()
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	connection := streamtest.Connect(t, streamtest.Server(t))
	broken, err := stream.Open(t.Context(), connection, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.acts.Usage, err = usage.Open(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	connection.Close()
	_, result := f.run("hello")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if !strings.Contains(f.logged.String(), "is missing in the report of usage") {
		t.Errorf("log = %s, want that the run is missing in the report", f.logged.String())
	}
}
