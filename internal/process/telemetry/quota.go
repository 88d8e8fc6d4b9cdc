package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Labels of metrics of quotas. A tenant is one of a bounded number, see package quota.
const (
	labelQuota  = attribute.Key("quota")
	labelTenant = attribute.Key("tenant")
)

// Usage is what a tenant has of a quota, as metrics show it.
type Usage struct {
	Tenant, Quota string
	Used          int64
	// Limit is the quota; negative = unlimited.
	Limit int64
}

// QuotaRefused counts a request that was refused because a tenant has reached a quota or a rate.
func QuotaRefused(tenant, quota string) {
	quotaRefused.count(context.Background(), 1, labelTenant.String(tenant), labelQuota.String(quota))
}

// QuotaWarned counts a warning about a quota that a tenant has almost reached.
func QuotaWarned(tenant, quota string) {
	quotaWarnings.count(context.Background(), 1, labelTenant.String(tenant), labelQuota.String(quota))
}

// ObserveQuotas exports what usages returns each time that metrics are read, until the caller calls
// stop. An unlimited quota has no limit in metrics.
func ObserveQuotas(usages func(context.Context) []Usage) (stop func()) {
	meter := otel.Meter(scope)
	used, usedErr := meter.Int64ObservableGauge(quotaUsed.Name, metric.WithDescription(quotaUsed.Description))
	limit, limitErr := meter.Int64ObservableGauge(quotaLimit.Name, metric.WithDescription(quotaLimit.Description))
	if usedErr != nil || limitErr != nil { // as in Metric.count: a metric must not fail a process
		return func() {}
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for _, u := range usages(ctx) {
			labels := metric.WithAttributes(labelTenant.String(u.Tenant), labelQuota.String(u.Quota))
			o.ObserveInt64(used, u.Used, labels)
			if u.Limit >= 0 {
				o.ObserveInt64(limit, u.Limit, labels)
			}
		}
		return nil
	}, used, limit)
	if err != nil {
		return func() {}
	}
	return func() { _ = registration.Unregister() } // fails only if it has been called before
}
