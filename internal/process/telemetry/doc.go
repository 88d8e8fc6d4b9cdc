// Package telemetry sets up OpenTelemetry as its standard environment variables say, and serves
// metrics to Prometheus.
//
//	HTTP request ─► start workflow ─► workflow task ─► activity ─► chat model     one trace
//
// Rules:
//   - Traces are exported only if OTEL_EXPORTER_OTLP_ENDPOINT (or its variant for traces) is set.
//     Otherwise no spans are made. The same holds for log records, which only the audit log makes.
//   - Metrics are always collected.
//   - Workflow code emits no telemetry. The interceptor does, because it can tell a replay from the
//     first execution.
//   - Content of messages is never an attribute.
package telemetry
