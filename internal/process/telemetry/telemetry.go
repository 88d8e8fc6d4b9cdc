// Package telemetry sets OpenTelemetry up the way its own environment variables say, and serves
// metrics to Prometheus.
//
//	HTTP request ─► start workflow ─► workflow task ─► activity ─► chat model     one trace
//
// Rules: traces are exported only where OTEL_EXPORTER_OTLP_ENDPOINT (or its traces form) is set,
// and cost nothing elsewhere; metrics are always kept; nothing is emitted from workflow code except
// by the interceptor, which knows a replay; content is never an attribute.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
)

// Telemetry is what a process reports. Its methods may be called concurrently.
type Telemetry struct {
	metrics *metric.MeterProvider
	traces  *trace.TracerProvider // nil = no traces
	handler http.Handler
}

// scrapes bounds how many clients are sent the metrics at a time; others get 503.
const scrapes = 8

// Start sets telemetry up for a service and makes it OpenTelemetry's global one. Shutdown must be
// called. OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and
// OTEL_EXPORTER_OTLP_* mean what the specification says.
func Start(ctx context.Context, service string, getenv func(string) string) (*Telemetry, error) {
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("telemetry: resource: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus: %w", err)
	}
	t := &Telemetry{
		metrics: metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res), metric.WithView(httpServer, temporalLatencies), metric.WithCardinalityLimit(seriesPerMetric),
			metric.WithExemplarFilter(exemplar.AlwaysOffFilter)), // /metrics has no format for them, and they hold the attributes that views drop
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes}),
	}
	otel.SetMeterProvider(t.metrics)
	if traced(getenv) {
		spans, err := spanExporter(ctx, getenv)
		if err != nil {
			return nil, fmt.Errorf("telemetry: traces: %w", err)
		}
		t.traces = trace.NewTracerProvider(trace.WithBatcher(spans), trace.WithResource(res), trace.WithIDGenerator(spanIDs{}))
		otel.SetTracerProvider(t.traces)
		otel.SetTextMapPropagator(propagator(getenv))
	}
	return t, nil
}

// seriesPerMetric bounds the time series of one metric. Beyond it, measurements are added up in one
// series with the label otel_metric_overflow="true".
const seriesPerMetric = 2000

// httpServer keeps the labels of HTTP metrics whose values the API decides. A client chooses the
// others: server.port comes from the Host header, and the protocol version may be any of HTTP/1.0
// to 1.9.
var httpServer = metric.NewView(metric.Instrument{Name: "http.server.*"}, metric.Stream{
	AttributeFilter: attribute.NewAllowKeysFilter("http.request.method", "http.response.status_code", "http.route", "url.scheme"),
})

// temporalLatencies gives the histograms of Temporal's SDK buckets for seconds.
var temporalLatencies = metric.NewView(metric.Instrument{Name: "temporal_*", Kind: metric.InstrumentKindHistogram}, metric.Stream{
	Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: []float64{0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 3600, 86400}},
})

func traced(getenv func(string) string) bool {
	return getenv("OTEL_SDK_DISABLED") != "true" && getenv("OTEL_TRACES_EXPORTER") != "none" &&
		(getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "")
}

// propagator reads and writes the headers traceparent and tracestate, unless OTEL_PROPAGATORS
// leaves tracecontext out. Baggage is neither read nor written: callers put what they like into it,
// which is not for the servers that runs reach.
func propagator(getenv func(string) string) propagation.TextMapPropagator {
	wanted := getenv("OTEL_PROPAGATORS")
	if wanted == "" || slices.ContainsFunc(strings.Split(wanted, ","), func(name string) bool { return strings.TrimSpace(name) == "tracecontext" }) {
		return propagation.TraceContext{}
	}
	return propagation.NewCompositeTextMapPropagator()
}

func spanExporter(ctx context.Context, getenv func(string) string) (trace.SpanExporter, error) {
	protocol := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; grpc and http/protobuf are known", protocol)
}

// Metrics serves what is measured in Prometheus's format.
func (t *Telemetry) Metrics() http.Handler { return t.handler }

// shutdownPatience bounds how long a collector may take for the last spans.
const shutdownPatience = time.Second

// Shutdown sends what is left. A collector that does not take it is no failure of the process: that
// is logged.
func (t *Telemetry) Shutdown(ctx context.Context, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, shutdownPatience)
	defer cancel()
	err := t.metrics.Shutdown(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	if err != nil {
		logger.WarnContext(ctx, "the last traces were not sent", "error", err)
	}
}

// Instrument makes a Temporal client, and the workers on it, report metrics and carry the trace.
func (t *Telemetry) Instrument(o *client.Options) {
	o.MetricsHandler = temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{Meter: t.metrics.Meter("temporal-sdk-go")})
	if t.traces == nil {
		return
	}
	o.Interceptors = append(o.Interceptors, interceptors(t.traces)...)
}

// NewLogger returns a logger whose lines carry the ids of the trace that they belong to.
func NewLogger(h slog.Handler) *slog.Logger { return slog.New(traceHandler{Handler: h}) }
