package telemetry

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/perdure/perdure/internal/reference"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md instead of comparing it")

// TestMetricsReference: the reference lists Perdure's metrics under the names that Prometheus
// shows.
func TestMetricsReference(t *testing.T) {
	before := otel.GetMeterProvider()
	tel, err := Start(t.Context(), "test", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		otel.SetMeterProvider(before)
		tel.Shutdown(context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler))
	})
	var page strings.Builder
	page.WriteString("| Metric | Type | Process | Labels | Meaning |\n|---|---|---|---|---|\n")
	for _, m := range Metrics() {
		var attrs []attribute.KeyValue
		var labels []string
		for _, key := range m.Labels {
			attrs = append(attrs, key.String("x"))
			if !strings.Contains(labelsOfModelCalls, string(key)) {
				labels = append(labels, "`"+strings.ReplaceAll(string(key), ".", "_")+"`")
			}
		}
		if len(labels) < len(m.Labels) {
			labels = append(labels, "those of model calls")
		}
		if m.Type == Histogram {
			m.record(t.Context(), 1, attrs...)
		} else {
			m.count(t.Context(), 1, attrs...)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", shownName(t, tel, m), m.Type, m.Process, strings.Join(labels, ", "), m.Description)
	}
	reference.Check(t, "../../../docs/reference/metrics.md", "metrics", page.String(), *update)
}

var labelsOfModelCalls = fmt.Sprint(modelCall)

// shownName returns the name under which /metrics shows the metric with the given description.
func shownName(t *testing.T, tel *Telemetry, m Metric) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if fields := strings.SplitN(strings.TrimSpace(line), " ", 4); len(fields) == 4 && fields[1] == "HELP" && fields[3] == m.Description {
			return fields[2]
		}
	}
	t.Fatalf("/metrics does not have %s", m.Name)
	return ""
}
