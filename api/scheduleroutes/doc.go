// Package scheduleroutes serves the schedules of tenants under /v1/schedules.
//
// A schedule is in two places: its definition in a key-value bucket, its times in Temporal. No
// transaction covers both, so the order of writes matters. The definition is written first and
// removed last; so Temporal fires nothing without a definition. A definition without a schedule in
// Temporal does not count, and may be replaced. Each request makes both agree, so a client that
// gets a 503 sends the same request again. The exceptions are a trigger, and a creation without an
// ID.
package scheduleroutes
