package usage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// noon is a time on the first day of the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// run returns a run of the tenant "acme ü" that ended after two seconds, with the usage of models.
func run(id, agent string, ended time.Time, used ...runs.Usage) Run {
	return Run{
		Run: stream.Run{Thread: stream.Thread{Tenant: "acme ü", ID: "t"}, ID: id}, Agent: agent, Ended: ended, Duration: 2 * time.Second,
		Usage: used, Currency: "EUR",
	}
}

// used returns usage with a cost in millionths; 0 = unknown.
func used(model string, input, output, cost int64) runs.Usage {
	u := runs.Usage{Provider: "p", Model: model, Input: &input, Output: &output}
	if cost > 0 {
		u.Cost = &cost
	}
	return u
}

// open opens the ledger of a new log.
func open(t *testing.T) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// count counts runs.
func count(t *testing.T, l *Ledger, all ...Run) {
	t.Helper()
	for _, r := range all {
		if err := l.Count(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// wantReport compares the report of a query.
func wantReport(t *testing.T, l *Ledger, q Query, want ...Item) {
	t.Helper()
	if q.From.IsZero() {
		q.From, q.To = noon.Truncate(24*time.Hour), noon.Truncate(24*time.Hour).AddDate(0, 0, 1)
	}
	got, err := l.Report(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report of %+v (-want +got):\n%s", q, diff)
	}
}

// TestPartIsNoRun: a part of a run adds tokens and cost, once, and neither a run nor a duration.
func TestPartIsNoRun(t *testing.T) {
	t.Parallel()
	l := open(t)
	title := run("r1", "a", noon, used("small", 5, 1, 7))
	title.Part = "title"
	count(t, l, run("r1", "a", noon, used("m", 10, 2, 20)), title, title)
	wantReport(t, l, Query{GroupBy: []Group{ByAgent}}, Item{
		Agent: "a", Runs: 1, InputTokens: 15, OutputTokens: 3, TotalTokens: 18, Cost: &Cost{27, "EUR"}, Seconds: 2,
	})
	wantReport(t, l, Query{GroupBy: []Group{ByModel}},
		Item{Model: "p/m", Runs: 1, InputTokens: 10, OutputTokens: 2, TotalTokens: 12, Cost: &Cost{20, "EUR"}, Seconds: 2},
		Item{Model: "p/small", InputTokens: 5, OutputTokens: 1, TotalTokens: 6, Cost: &Cost{7, "EUR"}},
	)
}

// TestRunsCountOnce: several processes count the same runs concurrently, and again later. Each run
// counts once.
func TestRunsCountOnce(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	var processes []*Ledger
	for range 2 {
		l, err := Open(t.Context(), streamtest.OpenOn(t, server))
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, l)
	}
	var g sync.WaitGroup
	for i := range 40 {
		for _, l := range processes {
			g.Go(func() {
				if err := l.Count(t.Context(), run(fmt.Sprint("r", i), "a", noon, used("m", 3, 1, 0))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	g.Wait()
	count(t, processes[0], run("r7", "a", noon, used("m", 3, 1, 0)))
	wantReport(t, processes[1], Query{Tenant: "acme ü"}, Item{Runs: 40, InputTokens: 120, OutputTokens: 40, TotalTokens: 160, Seconds: 80})
}

// TestWaitingRunsShareAWrite: runs that wait while another one is counted need one write. A run of
// another agent that waits for the same writer is counted for its own agent.
func TestWaitingRunsShareAWrite(t *testing.T) {
	t.Parallel()
	l := open(t)
	count(t, l, run("r0", "a", noon))
	day := key("acme ü", noon.Format(time.DateOnly), "a")
	w := &l.writers[hash(day)%uint32(len(l.writers))]
	before, err := l.kv.Get(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	w.turn <- struct{}{}
	other := "b"
	for hash(key("acme ü", noon.Format(time.DateOnly), other))%uint32(len(l.writers)) != hash(day)%uint32(len(l.writers)) {
		other += "b"
	}
	var g sync.WaitGroup
	g.Go(func() {
		if err := l.Count(t.Context(), run("r0", other, noon)); err != nil {
			t.Error(err)
		}
	})
	const runs = maxBatch / 2
	for i := range runs {
		g.Go(func() {
			if err := l.Count(t.Context(), run(fmt.Sprint("w", i), "a", noon)); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < runs+1; runtime.Gosched() {
		w.mu.Lock()
		waiting = 0
		for _, pending := range w.waiting {
			waiting += len(pending)
		}
		w.mu.Unlock()
	}
	<-w.turn
	g.Wait()
	status, err := l.kv.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if writes := status.(*jetstream.KeyValueBucketStatus).StreamInfo().State.LastSeq - before.Revision(); writes != 2 {
		t.Errorf("%d runs of two agents needed %d writes, not 2", runs+1, writes)
	}
	if len(w.waiting) > 0 {
		t.Errorf("still waiting: %v", w.waiting)
	}
	wantReport(t, l, Query{GroupBy: []Group{ByAgent}}, Item{Agent: "a", Runs: runs + 1, Seconds: 2 * (runs + 1)}, Item{Agent: other, Runs: 1, Seconds: 2})
}

// TestCancelledCountLeavesTheQueue: a run whose count is cancelled while it waits does not wait any more,
// and can be counted later.
func TestCancelledCountLeavesTheQueue(t *testing.T) {
	t.Parallel()
	l := open(t)
	one := run("r1", "a", noon)
	w := &l.writers[hash(key("acme ü", noon.Format(time.DateOnly), "a"))%uint32(len(l.writers))]
	w.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Count(ctx, one); !errors.Is(err, stream.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-w.turn
	if len(w.waiting) > 0 {
		t.Errorf("still waiting: %v", w.waiting)
	}
	count(t, l, one)
	wantReport(t, l, Query{}, Item{Runs: 1, Seconds: 2})
}

// TestProcessesShareAnEntry: a process that has written an entry counts its next run too, although another
// process has changed the entry in between.
func TestProcessesShareAnEntry(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	var processes []*Ledger
	for range 2 {
		l, err := Open(t.Context(), streamtest.OpenOn(t, server))
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, l)
	}
	for i := range 6 {
		count(t, processes[i%2], run(fmt.Sprint("r", i), "a", noon))
	}
	wantReport(t, processes[0], Query{}, Item{Runs: 6, Seconds: 12})
}

// TestCountWithoutServer: a count that cannot be written is an error, so that it can be repeated.
func TestCountWithoutServer(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	l, err := Open(t.Context(), streamtest.OpenOn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	count(t, l, run("r1", "a", noon))
	server.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Count(ctx, run("r2", "a", noon)); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// TestReportIsGrouped: a report has one item for each agent, model, tenant or day, or for their
// combinations, sorted.
func TestReportIsGrouped(t *testing.T) {
	t.Parallel()
	l := open(t)
	failed := run("r3", "b", noon.Add(12*time.Hour), used("m", 5, 0, 0))
	failed.Outcome = runs.OutcomeError
	other := run("r1", "a", noon, used("m", 1, 1, 1_000_000))
	other.Tenant = "other"
	count(t, l,
		run("r1", "a", noon, used("m", 10, 1, 500_000), used("n", 20, 2, 250_000)),
		run("r2", "a", noon), // no model call
		failed, other,
	)
	cost := func(amount agents.Money) *Cost { return &Cost{amount, "EUR"} }
	acme := "acme ü"
	wantReport(t, l, Query{Tenant: acme, GroupBy: []Group{ByDay}},
		Item{Day: "2026-03-01", Runs: 2, InputTokens: 30, OutputTokens: 3, TotalTokens: 33, Cost: cost(750_000), Seconds: 4},
		Item{Day: "2026-03-02", Runs: 1, Failed: 1, InputTokens: 5, TotalTokens: 5, Seconds: 2})
	wantReport(t, l, Query{Tenant: acme, GroupBy: []Group{ByModel}},
		Item{Runs: 1, Seconds: 2},
		Item{Model: "p/m", Runs: 2, Failed: 1, InputTokens: 15, OutputTokens: 1, TotalTokens: 16, Cost: cost(500_000), Seconds: 4},
		Item{Model: "p/n", Runs: 1, InputTokens: 20, OutputTokens: 2, TotalTokens: 22, Cost: cost(250_000), Seconds: 2})
	wantReport(t, l, Query{GroupBy: []Group{ByTenant, ByAgent}},
		Item{Tenant: acme, Agent: "a", Runs: 2, InputTokens: 30, OutputTokens: 3, TotalTokens: 33, Cost: cost(750_000), Seconds: 4},
		Item{Tenant: acme, Agent: "b", Runs: 1, Failed: 1, InputTokens: 5, TotalTokens: 5, Seconds: 2},
		Item{Tenant: "other", Agent: "a", Runs: 1, InputTokens: 1, OutputTokens: 1, TotalTokens: 2, Cost: cost(1_000_000), Seconds: 2})
	wantReport(t, l, Query{Tenant: acme, Agent: "b", GroupBy: []Group{ByAgent}}, Item{Agent: "b", Runs: 1, Failed: 1, InputTokens: 5, TotalTokens: 5, Seconds: 2})
	wantReport(t, l, Query{Tenant: "none", GroupBy: []Group{ByDay}}, []Item{}...)
	day := noon.Truncate(24 * time.Hour)
	wantReport(t, l, Query{Tenant: acme, From: day.AddDate(0, 0, 1), To: day.AddDate(0, 0, 1)}, Item{Runs: 1, Failed: 1, InputTokens: 5, TotalTokens: 5, Seconds: 2})
	wantReport(t, l, Query{From: day.AddDate(0, 0, -MaxDays+2), To: day.AddDate(0, 0, 1), Tenant: "other"}, Item{Runs: 1, InputTokens: 1, OutputTokens: 1, TotalTokens: 2, Cost: cost(1_000_000), Seconds: 2})
}

// TestCostsOfSeveralCurrencies: after a change of the currency of prices, costs are not added up.
func TestCostsOfSeveralCurrencies(t *testing.T) {
	t.Parallel()
	l := open(t)
	dollars := run("r2", "a", noon.Add(24*time.Hour), used("m", 1, 1, 3_000_000))
	dollars.Currency = "USD"
	count(t, l, run("r1", "a", noon, used("m", 1, 1, 2_000_000)), dollars)
	wantReport(t, l, Query{}, Item{Runs: 2, InputTokens: 2, OutputTokens: 2, TotalTokens: 4, Seconds: 4})
	wantReport(t, l, Query{GroupBy: []Group{ByDay}},
		Item{Day: "2026-03-01", Runs: 1, InputTokens: 1, OutputTokens: 1, TotalTokens: 2, Cost: &Cost{2_000_000, "EUR"}, Seconds: 2},
		Item{Day: "2026-03-02", Runs: 1, InputTokens: 1, OutputTokens: 1, TotalTokens: 2, Cost: &Cost{3_000_000, "USD"}, Seconds: 2})
}

// TestCostOfUnknownCurrency: a cost whose currency is unknown counts as one of the currency of the
// others.
func TestCostOfUnknownCurrency(t *testing.T) {
	t.Parallel()
	l := open(t)
	unknown := run("r2", "a", noon, used("m", 1, 1, 3_000_000))
	unknown.Currency = ""
	count(t, l, run("r1", "a", noon, used("m", 1, 1, 2_000_000)), unknown)
	wantReport(t, l, Query{}, Item{Runs: 2, InputTokens: 2, OutputTokens: 2, TotalTokens: 4, Cost: &Cost{5_000_000, "EUR"}, Seconds: 4})
}

// TestModelsOfEntryAreBounded: a provider that answers with another model each time does not make the
// entry grow. The usage of the models without a place of their own counts.
func TestModelsOfEntryAreBounded(t *testing.T) {
	t.Parallel()
	var e entry
	for i := range 3 * maxModels {
		e.add(run(fmt.Sprint(i), "a", noon, used(fmt.Sprint("m", i), 1, 0, 0)), fmt.Sprint(i))
	}
	if len(e.Models) > maxModels+1 {
		t.Errorf("models = %d, want at most %d", len(e.Models), maxModels+1)
	}
	s := sums{}
	s.add(e, nil)
	if items := s.items(); items[0].InputTokens != 3*maxModels || items[0].Runs != 3*maxModels {
		t.Errorf("item = %+v, want %d runs with a token each", items[0], 3*maxModels)
	}
	if len(e.Counted) != min(maxCounted, 3*maxModels) {
		t.Errorf("IDs of counted runs = %d, want %d", len(e.Counted), min(maxCounted, 3*maxModels))
	}
}

// TestLargeReportIsRefused: a report with too many items is an error.
func TestLargeReportIsRefused(t *testing.T) {
	t.Parallel()
	l := open(t)
	for i := range 170 {
		r := run("r", fmt.Sprint("a", i), noon)
		for m := range maxModels {
			r.Usage = append(r.Usage, used(fmt.Sprint(m), 1, 1, 0))
		}
		count(t, l, r)
	}
	day := noon.Truncate(24 * time.Hour)
	if _, err := l.Report(t.Context(), Query{From: day, To: day, GroupBy: []Group{ByAgent, ByModel}}); !errors.Is(err, ErrTooManyItems) {
		t.Errorf("error = %v, want %v", err, ErrTooManyItems)
	}
}

// TestInterruptedRunsCountApart: a run that waits for a decision is neither a success nor one more
// run beside the one that continues it. Its tokens and its time count.
func TestInterruptedRunsCountApart(t *testing.T) {
	t.Parallel()
	l := open(t)
	ended := func(id string, outcome runs.Outcome) Run {
		r := run(id, "a", noon, used("m", 3, 1, 0))
		r.Outcome = outcome
		return r
	}
	count(t, l, ended("r1", runs.OutcomeInterrupt), ended("r2", runs.OutcomeSuccess), ended("r3", runs.OutcomeInterrupt), ended("r4", runs.OutcomeCancelled))
	want := Item{Runs: 2, Cancelled: 1, Interrupted: 2, InputTokens: 12, OutputTokens: 4, TotalTokens: 16, Seconds: 8}
	wantReport(t, l, Query{}, want)
	want.Model = "p/m"
	wantReport(t, l, Query{GroupBy: []Group{ByModel}}, want)
}
