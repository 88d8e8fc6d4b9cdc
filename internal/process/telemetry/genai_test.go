package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestConventionalNames(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{"gemini": "gcp.gemini", "anthropic": "anthropic", "openai": "openai", "ours": "ours"} {
		if got := conventional(provider); got != want {
			t.Errorf("%s is called %s, want %s", provider, got, want)
		}
	}
}

// TestEstimatesAreMarked: one attribute distinguishes estimated token counts from counts that the
// provider reported. This holds for failed attempts as well.
func TestEstimatesAreMarked(t *testing.T) {
	reader := metric.NewManualReader()
	before := otel.GetMeterProvider()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	n := int64(10)
	q := ChatRequest{Provider: "openai", Model: "m"}
	_, chat := StartChat(t.Context(), q)
	chat.End(ChatResponse{Model: "m", Input: &n, Output: &n})
	_, chat = StartChat(t.Context(), q)
	chat.End(ChatResponse{Model: "m", Input: &n, Output: &n, Error: "cancelled", Estimated: true})
	CountCut(t.Context(), q, ChatResponse{Model: "m", Input: &n, Output: &n, Estimated: true})

	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	sums := map[bool]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != metricTokens {
				continue
			}
			for _, point := range h.DataPoints {
				estimated, ok := point.Attributes.Value(attrEstimated)
				if !ok {
					t.Errorf("a count is not marked either way: %v", point.Attributes)
				}
				sums[estimated.AsBool()] += point.Sum
			}
		}
	}
	if sums[false] != 20 || sums[true] != 40 {
		t.Errorf("tokens by whether they are estimates = %v, want 20 and 40", sums)
	}
}
