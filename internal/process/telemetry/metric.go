package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metric is a definition of one of Perdure's own metrics. The reference of metrics in the
// documentation is generated from these definitions.
type Metric struct {
	// Name and Unit are those of OpenTelemetry. Prometheus shows the name with underscores instead
	// of dots, and with suffixes for the unit and the type.
	Name, Unit  string
	Type        MetricType
	Description string
	// Process is the process that records the metric: "api", "worker" or "api, worker". perdure dev
	// records all.
	Process string
	// Labels are the attributes of the metric's values.
	Labels []attribute.Key
	// buckets are the upper bounds of the buckets of a histogram.
	buckets []float64
}

// MetricType is the kind of a metric's instrument.
type MetricType string

// A Counter only grows, a Gauge goes up and down, a Histogram counts values by their size.
const (
	Counter   MetricType = "counter"
	Gauge     MetricType = "gauge"
	Histogram MetricType = "histogram"
)

// Processes that record metrics.
const (
	processAPI    = "api"
	processWorker = "worker"
	processBoth   = "api, worker"
)

// Labels of metrics that no span has as attributes.
const (
	labelAgent    = attribute.Key("agent")
	labelOutcome  = attribute.Key("outcome")
	labelCode     = attribute.Key("code")
	labelEnd      = attribute.Key("end")
	labelKind     = attribute.Key("kind")
	labelProvider = attribute.Key("provider")
	labelModel    = attribute.Key("model")
)

// modelCall are the labels of all metrics of model calls.
var modelCall = []attribute.Key{attrOperation, attrProvider, attrRequestModel, attrResponseModel, attrErrorType}

// Buckets that OpenTelemetry's semantic conventions for generative AI recommend.
var (
	durationBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

var (
	runsFinished = Metric{Name: "perdure.runs.finished", Type: Counter, Process: processWorker,
		Description: "runs that a worker ended; without those that the API ended because their workflow was terminated or lost",
		Labels:      []attribute.Key{labelAgent, labelOutcome, labelCode}}
	outputs = Metric{Name: "perdure.outputs", Type: Counter, Process: processWorker,
		Description: "answers that must [fit a schema](../guides/structured-runs.md); `outcome` is `valid`, `repaired` (valid after it was sent back) or `failed`",
		Labels:      []attribute.Key{labelAgent, labelOutcome}}
	openWaits = Metric{Name: "perdure.waits.open", Type: Gauge, Process: processAPI,
		Description: "[waits](../guides/waits.md) of all threads that are open; `kind` is `timer` or `event`. All API processes have the same",
		Labels:      []attribute.Key{labelKind}}
	waitsEnded = Metric{Name: "perdure.waits.ended", Type: Counter, Process: processWorker,
		Description: "waits that ended, by [how](#how-waits-end)", Labels: []attribute.Key{labelKind, labelEnd}}
	eventOutcomes = Metric{Name: "perdure.events", Type: Counter, Process: processBoth,
		Description: "events of other systems, by [what happened to them](#events); `source` is `api`, `webhook` or `nats`",
		Labels:      []attribute.Key{labelSource, labelOutcome}}
	viewers      = Metric{Name: "perdure.viewers", Type: Gauge, Process: processAPI, Description: "open event streams, over HTTP and WebSockets"}
	viewersEnded = Metric{Name: "perdure.viewers.ended", Type: Counter, Process: processAPI, Description: "event streams that ended, by [reason](#why-streams-end)",
		Labels: []attribute.Key{labelEnd}}
	sockets      = Metric{Name: "perdure.sockets", Type: Gauge, Process: processAPI, Description: "open WebSockets"}
	socketsEnded = Metric{Name: "perdure.sockets.ended", Type: Counter, Process: processAPI, Description: "WebSockets that ended, by close code; 1006: without a close code",
		Labels: []attribute.Key{labelCode}}
	quotaUsed = Metric{Name: "perdure.quota.used", Type: Gauge, Process: processAPI, Description: "what a [tenant](#tenants) has of a quota",
		Labels: []attribute.Key{labelTenant, labelQuota}}
	quotaLimit = Metric{Name: "perdure.quota.limit", Type: Gauge, Process: processAPI, Description: "the quota; absent if it is unlimited",
		Labels: []attribute.Key{labelTenant, labelQuota}}
	quotaRefused = Metric{Name: "perdure.quota.refused", Type: Counter, Process: processBoth, Description: "requests, and in workers firings of schedules, that were refused because a tenant has reached a quota or a rate",
		Labels: []attribute.Key{labelTenant, labelQuota}}
	quotaWarnings = Metric{Name: "perdure.quota.warnings", Type: Counter, Process: processBoth, Description: "times that a tenant has reached 80 % of a quota",
		Labels: []attribute.Key{labelTenant, labelQuota}}
	expired = Metric{Name: "perdure.retention.removed", Type: Counter, Process: processAPI,
		Description: "what the retention removed; `kind` is `threads`, or `audit` for entries of the audit log", Labels: []attribute.Key{labelKind}}
	modelCost = Metric{Name: metricCost, Type: Counter, Process: processWorker, Description: "cost of model calls of models with a price, in the currency of the prices",
		Labels: append([]attribute.Key{attrCurrency, attrEstimated}, modelCall...)}
	openCircuits = Metric{Name: "perdure.model.circuits.open", Type: Gauge, Process: processWorker,
		Description: "models that a worker does not call, or probes, because [calls have failed](../guides/models.md#when-a-model-keeps-failing)",
		Labels:      []attribute.Key{labelProvider, labelModel}}
	modelWait = Metric{Name: metricWait, Unit: "s", Type: Histogram, Process: processWorker,
		Description: "time that model calls waited because of the [limits](configuration.md#limits-of-model-providers) of their provider; calls that wait for less than 0.1 s are not recorded",
		Labels:      []attribute.Key{labelProvider, labelModel}, buckets: durationBuckets}
	modelDuration = Metric{Name: metricDuration, Unit: "s", Type: Histogram, Process: processWorker, Description: "duration of model calls",
		Labels: modelCall, buckets: durationBuckets}
	modelFirstChunk = Metric{Name: metricFirstChunk, Unit: "s", Type: Histogram, Process: processWorker, Description: "time from the request of a model call to the first chunk of the response",
		Labels: modelCall, buckets: durationBuckets}
	modelTokens = Metric{Name: metricTokens, Unit: "{token}", Type: Histogram, Process: processWorker, Description: "tokens of model calls; `gen_ai_token_type` is `input` or `output`",
		Labels: append([]attribute.Key{attrTokenType, attrEstimated}, modelCall...), buckets: tokenBuckets}
)

// Metrics returns the definitions of Perdure's own metrics. The process also exports the metrics of
// its HTTP server, of Temporal's SDK and of the Go runtime.
func Metrics() []Metric {
	return slices.Clone([]Metric{runsFinished, outputs, openWaits, waitsEnded, eventOutcomes, viewers, viewersEnded, sockets, socketsEnded, quotaUsed, quotaLimit, quotaRefused, quotaWarnings, expired, modelCost, openCircuits, modelWait, modelDuration, modelFirstChunk, modelTokens})
}

// count changes a counter or a gauge by n. Instruments are looked up by name; the SDK returns the
// same one each time. If the SDK refuses the name, nothing is recorded: a metric must not fail a
// run.
func (m Metric) count(ctx context.Context, n int64, attrs ...attribute.KeyValue) {
	if m.Type == Gauge {
		if c, err := otel.Meter(scope).Int64UpDownCounter(m.Name, metric.WithDescription(m.Description)); err == nil {
			c.Add(ctx, n, metric.WithAttributes(attrs...))
		}
		return
	}
	if c, err := otel.Meter(scope).Int64Counter(m.Name, metric.WithDescription(m.Description)); err == nil {
		c.Add(ctx, n, metric.WithAttributes(attrs...))
	}
}

// record adds an amount to a counter, or a value to a histogram. Errors are ignored as in count.
func (m Metric) record(ctx context.Context, amount float64, attrs ...attribute.KeyValue) {
	if m.Type == Counter {
		if c, err := otel.Meter(scope).Float64Counter(m.Name, metric.WithDescription(m.Description)); err == nil {
			c.Add(ctx, amount, metric.WithAttributes(attrs...))
		}
		return
	}
	h, err := otel.Meter(scope).Float64Histogram(m.Name, metric.WithDescription(m.Description), metric.WithUnit(m.Unit), metric.WithExplicitBucketBoundaries(m.buckets...))
	if err == nil {
		h.Record(ctx, amount, metric.WithAttributes(attrs...))
	}
}
