// Package scheduleroutes serves the schedules of tenants under /v1/schedules.
//
// A schedule is in two places: its definition in a bucket, its times in Temporal. The definition is
// written first and removed last, so Temporal fires nothing without a definition. A definition
// without a schedule in Temporal does not count. Each request makes both agree, so repeating it is
// safe.
package scheduleroutes
