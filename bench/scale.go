package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// scale is a load with a size, such as 5,000 viewers, on one system. run measures it with size n.
type scale struct {
	amount
	run func(ctx context.Context, s *site, n int) error
	// system is the name of the system that is measured.
	system string
	// settings are environment variables for the system's processes, NAME=value.
	settings []string
	// large means that a measurement with -quick or -base leaves it out, unless it is named.
	large bool
}

var scales = []scale{
	{amount{"approvals", "Approvals of single runs in perdure dev", 100, 20}, approvals, "dev", nil, false},
	{amount{"cancels", "Cancels of single runs in perdure dev", 30, 5}, cancels, "dev", nil, false},
	{amount{"remotes", "Runs of a remote agent in perdure dev, and of the same agent asked directly", 100, 20}, remotes, "dev", nil, false},
	{amount{"memory", "Memory of perdure dev, with runs and as many parked runs", 1000, 200}, memory, "dev", []string{"PERDURE_PARK_AFTER=1s"}, false},
	{amount{"kills", "Workers killed while they stream", 20, 5}, kills, "apart", nil, false},
	{amount{"crowd", "Viewers of one run", 5000, 300}, crowd, "apart", small, true},
	{amount{"streams", "Runs that stream at once", 1000, 100}, streams, "apart", small, true},
	{amount{"parked", "Parked runs", 10000, 200}, parked, "apart", small, true},
	{amount{"tenants", "Runs of a tenant while another tenant makes single runs", 1500, 1200}, tenants, "apart", []string{"PERDURE_AUTH=header", "PERDURE_AUTH_TENANT_HEADER=X-Tenant"}, true},
}

// small are settings with which few runs fill the cache of workflows, and waiting runs are parked
// soon.
var small = []string{"PERDURE_PARK_AFTER=1s", "PERDURE_WORKFLOW_CACHE=100"}

// scaleAmounts returns the amounts of scales, with or without the large ones.
func scaleAmounts(large bool) []amount {
	var all []amount
	for _, s := range scales {
		if large || !s.large {
			all = append(all, s.amount)
		}
	}
	return all
}

// largeAmounts returns the amounts of the large scales.
func largeAmounts() []amount {
	return slices.DeleteFunc(scaleAmounts(true), func(a amount) bool { return slices.Contains(scaleAmounts(false), a) })
}

// finding is one number of a scale.
type finding struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

func (f finding) String() string {
	digits := 0
	if f.Value < 100 && f.Value != math.Trunc(f.Value) {
		digits = 2
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, f.Value, f.Unit))
}

// site is the setup of a scale: a running system.
type site struct {
	*running
	bench    *bench
	quick    bool
	findings []finding
}

func (s *site) found(what string, value float64, unit string) {
	s.findings = append(s.findings, finding{what, value, unit})
	s.bench.tell("  %s: %.4g %s", what, value, unit)
}

// quantiles records the median and the 99th percentile of times in microseconds.
func (s *site) quantiles(what string, times []int64) {
	s.found(what+", p50", millis(times, 0.5), "ms")
	s.found(what+", p99", millis(times, 0.99), "ms")
}

// measureScales measures each planned scale on fresh data.
func (b *bench) measureScales(ctx context.Context) (map[string][]finding, error) {
	all := map[string][]finding{}
	for _, sc := range scales {
		n := b.plan.Scales[sc.name]
		if n == 0 {
			continue
		}
		b.tell("%s: %d", sc.name, n)
		findings, err := b.measureScale(ctx, sc, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.name, err)
		}
		all[sc.name] = findings
	}
	return all, nil
}

func (b *bench) measureScale(ctx context.Context, sc scale, n int) (_ []finding, err error) {
	r, err := b.start(ctx, systemOf(sc.system), false, sc.settings...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	s := &site{running: r, bench: b, quick: b.plan.quick}
	if err := sc.run(ctx, s, n); err != nil {
		return nil, fmt.Errorf("%w%s", err, r.tails())
	}
	return s.findings, nil
}
