package quota

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/process/telemetry"
)

// Count returns how much a tenant has of a quota, from memory: metrics call it for each tenant. It
// may not include what was written in the last moments.
type Count func(ctx context.Context, tenant string) (int64, error)

// SubjectCount returns how much a subject has of a quota of its tenant, from memory.
type SubjectCount func(tenant, subject string) int64

// Meter compares what tenants have with their quotas. Counts derive from what exists; a Meter stores
// nothing. It is safe for concurrent use.
type Meter struct {
	Table *Table
	// Counts are the counted quotas. One that is missing has no limit.
	Counts map[Name]Count
	// Subjects has the counts of what subjects have. Subjects share nothing of a quota that is
	// missing.
	Subjects map[Name]SubjectCount
}

// Usage is what a tenant has of a quota.
type Usage struct {
	Quota Name
	Limit Limit
	Used  int64
}

// Check returns an *ExceededError for the first of the quotas that a tenant has reached.
func (m *Meter) Check(ctx context.Context, tenant string, names ...Name) error {
	for _, name := range names {
		if err := m.CheckMore(ctx, tenant, name, 1); err != nil {
			return err
		}
	}
	return nil
}

// CheckMore returns an *ExceededError if a tenant may not have n more of a quota.
func (m *Meter) CheckMore(ctx context.Context, tenant string, name Name, n int64) error {
	usage, ok, err := m.usage(ctx, tenant, name)
	if err != nil || !ok {
		return err
	}
	return m.Table.check(tenant, name, usage.Used, n)
}

// CheckSubject returns an *ExceededError if a subject may not have n more of a quota, because it
// has its part of what its tenant may have.
func (m *Meter) CheckSubject(tenant, subject string, name Name, n int64) error {
	count := m.Subjects[name]
	if count == nil || subject == "" {
		return nil
	}
	limit, used := m.Table.subjectLimit(tenant, subject, m.Table.Of(tenant, name)), count(tenant, subject)
	if limit.Permits(used, n) {
		return nil
	}
	return m.Table.refuseSubject(tenant, name, limit, used)
}

// Usages returns what a tenant has of all quotas, in the order of the documentation.
func (m *Meter) Usages(ctx context.Context, tenant string) ([]Usage, error) {
	var all []Usage
	for _, name := range Counted {
		usage, ok, err := m.usage(ctx, tenant, name)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, usage)
		}
	}
	return all, nil
}

// usage returns what a tenant has of a quota; false = nothing counts it.
func (m *Meter) usage(ctx context.Context, tenant string, name Name) (Usage, bool, error) {
	count := m.Counts[name]
	if count == nil {
		return Usage{}, false, nil
	}
	used, err := count(ctx, tenant)
	if err != nil {
		return Usage{}, false, fmt.Errorf("quota: count %s: %w", name, err)
	}
	return Usage{Quota: name, Limit: m.Table.Of(tenant, name), Used: used}, true, nil
}

// Measure exports what tenants have of their quotas as metrics, until the caller calls stop. Metrics
// name the tenant default, and the first 99 tenants that the file of quotas lists.
func (m *Meter) Measure() (stop func()) {
	return telemetry.ObserveQuotas(func(ctx context.Context) (all []telemetry.Usage) {
		for _, tenant := range m.Table.labels() {
			for _, name := range Counted {
				if u, ok, err := m.usage(ctx, tenant, name); ok && err == nil {
					all = append(all, telemetry.Usage{Tenant: tenant, Quota: string(name), Used: u.Used, Limit: int64(u.Limit)})
				}
			}
		}
		return all
	})
}
