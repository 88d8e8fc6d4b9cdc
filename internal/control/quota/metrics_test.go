package quota

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// TestMetricsOfQuotas: metrics have the use, the limit, the refusals and the warnings of tenants that
// the file lists, and add up the refusals of all others.
func TestMetricsOfQuotas(t *testing.T) { //nolint:paralleltest // because it sets the meter provider of the process
	before := otel.GetMeterProvider()
	tel, err := telemetry.Start(t.Context(), "test", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		otel.SetMeterProvider(before)
		tel.Shutdown(context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler))
	})
	var file strings.Builder
	file.WriteString("default: {runs: 3, subjectRequestsPerSecond: 1}\ntenants:\n  acme: {runs: 5, threads: unlimited}\n")
	for i := range 2 * maxLabels {
		fmt.Fprintf(&file, "  many-%03d: {runs: 2}\n", i)
	}
	limits := table(t, file.String())
	limits.logger, limits.warned = slog.New(slog.DiscardHandler), map[warning]bool{}
	used := func(_ context.Context, tenant string) (int64, error) { return int64(len(tenant)), nil } // acme: 4 of 5
	meter := &Meter{Table: limits, Counts: map[Name]Count{Runs: used, Threads: used}}
	stop := meter.Measure()
	for range 2 {
		for _, tenant := range []string{"acme", "unlisted-1", "unlisted-2"} {
			_ = meter.Check(t.Context(), tenant, Runs) // the metrics tell what it returns
		}
	}
	rates := NewRates(limits)
	for range burstSeconds + 2 {
		_ = rates.Take(auth.Principal{Tenant: "acme", Subject: "ann"}, false)
	}
	shown := figures(t, tel)
	for _, line := range []string{
		`perdure_quota_used{quota="runs",tenant="acme"} 4`,
		`perdure_quota_limit{quota="runs",tenant="acme"} 5`,
		`perdure_quota_used{quota="threads",tenant="acme"} 4`,
		`perdure_quota_used{quota="runs",tenant="default"} 7`,
		`perdure_quota_warnings_total{quota="runs",tenant="acme"} 1`,
		`perdure_quota_warnings_total{quota="runs",tenant="_other"} 2`,
		`perdure_quota_refused_total{quota="runs",tenant="_other"} 4`,
		`perdure_quota_refused_total{quota="subjectRequestsPerSecond",tenant="acme"} 2`,
	} {
		if !strings.Contains(shown, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	if strings.Contains(shown, `perdure_quota_limit{quota="threads",tenant="acme"}`) {
		t.Error("an unlimited quota has a limit")
	}
	if n := strings.Count(shown, `perdure_quota_used{quota="runs"`); n != maxLabels {
		t.Errorf("tenants in metrics: got %d, want %d", n, maxLabels)
	}
	stop()
	if strings.Contains(figures(t, tel), "perdure_quota_used") {
		t.Error("there are gauges after stop")
	}
}

// figures returns what /metrics shows.
func figures(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
