// Package telemetry sets OpenTelemetry up the way its own environment variables say, and serves
// metrics to Prometheus.
//
//	HTTP request ─► start workflow ─► workflow task ─► activity ─► chat model     one trace
//
// Rules: traces are exported only where OTEL_EXPORTER_OTLP_ENDPOINT (or its traces form) is set, and
// cost nothing elsewhere; metrics are always kept; nothing is emitted from workflow code except by
// the interceptor, which knows a replay; content is never an attribute.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

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
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// Telemetry is what a process reports. Its methods may be called concurrently.
type Telemetry struct {
	metrics *metric.MeterProvider
	traces  *trace.TracerProvider // nil = no traces
	handler http.Handler
}

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
		metrics: metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res)),
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	otel.SetMeterProvider(t.metrics)
	if traced(getenv) {
		spans, err := spanExporter(ctx, getenv)
		if err != nil {
			return nil, fmt.Errorf("telemetry: traces: %w", err)
		}
		t.traces = trace.NewTracerProvider(trace.WithBatcher(spans), trace.WithResource(res))
		otel.SetTracerProvider(t.traces)
		otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	}
	return t, nil
}

func traced(getenv func(string) string) bool {
	return getenv("OTEL_SDK_DISABLED") != "true" && getenv("OTEL_TRACES_EXPORTER") != "none" &&
		(getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "")
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

// Shutdown sends what is left.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	err := t.metrics.Shutdown(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	return err
}

// Instrument makes a Temporal client, and the workers on it, report metrics and carry the trace.
func (t *Telemetry) Instrument(o *client.Options) error {
	o.MetricsHandler = temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{Meter: t.metrics.Meter("temporal-sdk-go")})
	if t.traces == nil {
		return nil
	}
	tracing, err := temporalotel.NewTracingInterceptor(temporalotel.TracerOptions{
		Tracer: t.traces.Tracer("temporal-sdk-go"), AllowInvalidParentSpans: true, DisableBaggage: true,
	})
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	o.Interceptors = append(o.Interceptors, interceptor.ClientInterceptor(tracing))
	return nil
}

// NewLogger returns a logger whose lines carry the ids of the trace that they belong to.
func NewLogger(h slog.Handler) *slog.Logger { return slog.New(traceHandler{h}) }
