package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// labelSource is how an event has reached Perdure: api, webhook or nats.
const labelSource = attribute.Key("source")

// Outcomes of events, as metrics have them.
const (
	EventReceived  = "received"  // it is durable
	EventDuplicate = "duplicate" // its source and ID were known
	EventDelivered = "delivered" // it has ended a wait
	EventTriggered = "triggered" // it starts a run
	EventUnmatched = "unmatched" // nothing waited for it, and no trigger matched it, when it arrived
)

// CountEvent counts an outcome of an event. source is how it has reached Perdure.
func CountEvent(ctx context.Context, source, outcome string) {
	eventOutcomes.count(ctx, 1, labelSource.String(source), labelOutcome.String(outcome))
}

// Ends of waits, as metrics have them.
const (
	WaitFired     = "fired"     // its time has come
	WaitEvent     = "event"     // its event has arrived
	WaitContinued = "continued" // a caller has continued it early
	WaitTimedOut  = "timed_out" // its event has not arrived in time
	WaitCancelled = "cancelled" // a caller has cancelled it, or the run
)

// CountEndedWait counts a wait that has ended. kind is timer or event.
func CountEndedWait(ctx context.Context, kind, end string) {
	waitsEnded.count(ctx, 1, labelKind.String(kind), labelEnd.String(end))
}

// ObserveWaits exports the numbers of open waits by their kinds each time that metrics are read, until
// the caller calls stop.
func ObserveWaits(counts func() map[string]int64) (stop func()) {
	meter := otel.Meter(scope)
	open, err := meter.Int64ObservableGauge(openWaits.Name, metric.WithDescription(openWaits.Description))
	if err != nil { // as in Metric.count: a metric must not fail a process
		return func() {}
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for kind, n := range counts() {
			o.ObserveInt64(open, n, metric.WithAttributes(labelKind.String(kind)))
		}
		return nil
	}, open)
	if err != nil {
		return func() {}
	}
	return func() { _ = registration.Unregister() } // fails only if it has been called before
}

// Outcomes of answers that must fit a schema, as metrics have them.
const (
	OutputValid    = "valid"    // at first
	OutputRepaired = "repaired" // after it was sent back
	OutputFailed   = "failed"   // invalid, without further repairs
)

// CountOutput counts an answer of an agent that must fit a schema, when no repair follows.
func CountOutput(ctx context.Context, agent, outcome string) {
	outputs.count(ctx, 1, labelAgent.String(agent), labelOutcome.String(outcome))
}
