package telemetry

import (
	"cmp"
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
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/log/global"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
)

// Telemetry has the providers of one process. Start makes it; Shutdown flushes and closes it. Its
// methods are safe for concurrent use.
type Telemetry struct {
	metrics *metric.MeterProvider
	traces  *trace.TracerProvider // nil = no traces
	logs    *log.LoggerProvider   // of the audit log; nil = no log records
	handler http.Handler
}

// maxScrapes bounds the concurrent responses to /metrics. Further requests get 503.
const maxScrapes = 8

// Start sets up telemetry for a service, and registers it as OpenTelemetry's global providers. The
// caller must call Shutdown. OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER and OTEL_EXPORTER_OTLP_* have the meaning of the OpenTelemetry specification.
// Start does not connect to the collector.
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
		metrics: metric.NewMeterProvider(
			metric.WithReader(reader),
			metric.WithResource(res),
			metric.WithView(httpServer, temporalLatencies),
			metric.WithCardinalityLimit(seriesPerMetric),
			// /metrics has no format for exemplars, and they hold the attributes that views drop.
			metric.WithExemplarFilter(exemplar.AlwaysOffFilter),
		),
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}),
	}
	otel.SetMeterProvider(t.metrics)
	if exported(getenv, "TRACES") {
		spans, err := spanExporter(ctx, getenv)
		if err != nil {
			return nil, fmt.Errorf("telemetry: traces: %w", err)
		}
		t.traces = trace.NewTracerProvider(trace.WithBatcher(spans), trace.WithResource(res), trace.WithIDGenerator(spanIDs{}))
		otel.SetTracerProvider(t.traces)
		otel.SetTextMapPropagator(propagator(getenv))
	}
	if exported(getenv, "LOGS") {
		records, err := logExporter(ctx, getenv)
		if err != nil {
			return nil, fmt.Errorf("telemetry: log records: %w", err)
		}
		t.logs = log.NewLoggerProvider(log.WithProcessor(log.NewBatchProcessor(records)), log.WithResource(res))
		global.SetLoggerProvider(t.logs)
	}
	return t, nil
}

// seriesPerMetric bounds the time series of one metric. Further measurements are added up in one
// series with the label otel_metric_overflow="true".
const seriesPerMetric = 2000

// httpServer keeps the labels of HTTP metrics whose values the API determines. A client can choose
// those of the others without bound: server.port is from the Host header, and the protocol version
// may be anything from HTTP/1.0 to 1.9.
var httpServer = metric.NewView(metric.Instrument{Name: "http.server.*"}, metric.Stream{
	AttributeFilter: attribute.NewAllowKeysFilter("http.request.method", "http.response.status_code", "http.route", "url.scheme"),
})

// temporalLatencies sets buckets for durations in seconds for the histograms of Temporal's SDK.
var temporalLatencies = metric.NewView(metric.Instrument{Name: "temporal_*", Kind: metric.InstrumentKindHistogram}, metric.Stream{
	Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: []float64{0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 3600, 86400}},
})

// exported reports whether the environment enables a signal, TRACES or LOGS.
func exported(getenv func(string) string, signal string) bool {
	return getenv("OTEL_SDK_DISABLED") != "true" && getenv("OTEL_"+signal+"_EXPORTER") != "none" &&
		(getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "")
}

// propagator returns the propagator of the headers traceparent and tracestate, or one that does
// nothing if OTEL_PROPAGATORS does not list tracecontext. Baggage is neither read nor sent: it may
// contain data of callers that other servers must not get.
func propagator(getenv func(string) string) propagation.TextMapPropagator {
	configured := getenv("OTEL_PROPAGATORS")
	if configured == "" || slices.ContainsFunc(strings.Split(configured, ","), func(name string) bool { return strings.TrimSpace(name) == "tracecontext" }) {
		return propagation.TraceContext{}
	}
	return propagation.NewCompositeTextMapPropagator()
}

// spanExporter returns the exporter for the configured OTLP protocol. The exporter itself reads the
// other OTEL_EXPORTER_OTLP_* variables.
func spanExporter(ctx context.Context, getenv func(string) string) (trace.SpanExporter, error) {
	isGRPC, err := usesGRPC(getenv, "TRACES")
	switch {
	case err != nil:
		return nil, err
	case isGRPC:
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

// logExporter is spanExporter for log records.
func logExporter(ctx context.Context, getenv func(string) string) (log.Exporter, error) {
	isGRPC, err := usesGRPC(getenv, "LOGS")
	switch {
	case err != nil:
		return nil, err
	case isGRPC:
		return otlploggrpc.New(ctx)
	}
	return otlploghttp.New(ctx)
}

// usesGRPC reports whether the OTLP protocol of a signal is gRPC; otherwise it is HTTP.
func usesGRPC(getenv func(string) string, signal string) (bool, error) {
	protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	switch protocol {
	case "grpc":
		return true, nil
	case "", "http/protobuf":
		return false, nil
	}
	return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; grpc and http/protobuf are known", protocol)
}

// Metrics returns the handler of /metrics, in the format of Prometheus.
func (t *Telemetry) Metrics() http.Handler { return t.handler }

// shutdownTimeout bounds how long Shutdown waits for the collector.
const shutdownTimeout = time.Second

// Shutdown exports the remaining spans and closes the providers, within shutdownTimeout. It only
// logs an error: a missing collector must not fail the process.
func (t *Telemetry) Shutdown(ctx context.Context, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	err := t.metrics.Shutdown(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	if t.logs != nil {
		err = errors.Join(err, t.logs.Shutdown(ctx))
	}
	if err != nil {
		logger.WarnContext(ctx, "the last traces or log records were not sent", "error", err)
	}
}

// Instrument makes a Temporal client, and the workers that use it, report metrics and propagate
// traces.
func (t *Telemetry) Instrument(o *client.Options) {
	o.MetricsHandler = temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{Meter: t.metrics.Meter("temporal-sdk-go")})
	if t.traces == nil {
		return
	}
	o.Interceptors = append(o.Interceptors, interceptors(t.traces)...)
}

// NewLogger returns a logger whose lines have the trace and the run of their context.
func NewLogger(h slog.Handler) *slog.Logger { return slog.New(traceHandler{Handler: h}) }
