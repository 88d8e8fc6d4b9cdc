package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// floods is how often one tenant floods the worker. Before each time, and during it, the other
	// tenant makes its runs, so that other load of the machine affects both measurements.
	floods = 3
	// quietRuns is the number of runs of the other tenant in each measurement, one after another.
	quietRuns = 20
)

// tenants measures what a tenant notices of another one that occupies the worker: the first one has n
// long runs at a time, more than the worker has slots for model calls, and starts a run for each that
// ends. The other one makes single runs, alone and during the flood.
func tenants(ctx context.Context, s *site, n int) error {
	times := floods
	if s.quick {
		times = 1
	}
	quiet := &load{target: s.target}
	quiet.target.tenant = "quiet"
	alone, flooded := &sample{}, &sample{}
	if _, err := quiet.drive(ctx, phase{pace: usual, concurrency: 1}, 3); err != nil { // warm up
		return err
	}
	for i := range times {
		s.bench.tell("  flood %d of %d", i+1, times)
		measured, err := quiet.drive(ctx, phase{pace: usual, concurrency: 1}, quietRuns)
		if err != nil {
			return fmt.Errorf("alone: %w", err)
		}
		alone.add(measured)
		if measured, err = s.flood(ctx, n, quiet); err != nil {
			return fmt.Errorf("flood: %w", err)
		}
		flooded.add(measured)
	}
	s.waited("from the request to the model, alone", alone)
	s.waited("from the request to the model, during the flood", flooded)
	s.compare("first token", alone.first, flooded.first)
	s.compare("whole run", alone.total, flooded.total)
	return nil
}

// flood makes n long runs at a time for one tenant until the other one has made its runs, whose
// sample it returns, and waits for the end of all runs.
func (s *site) flood(ctx context.Context, n int, quiet *load) (measured *sample, err error) {
	noisy := &load{target: s.target}
	noisy.target.tenant = fmt.Sprintf("noisy-%d", quiet.next.Load()) // the IDs of threads begin at 1 again
	var over atomic.Bool
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := noisy.driveWhile(ctx, phase{pace: long, concurrency: n, spread: speeches[long].interval}, func() bool { return !over.Load() })
		return err
	})
	g.Go(func() error {
		defer over.Store(true)
		if err := wait(ctx, speeches[long].interval); err != nil { // all of the n runs have begun
			return err
		}
		if err := until(ctx, func() (bool, error) { return s.saturated(ctx) }); err != nil {
			return err
		}
		measured, err = quiet.drive(ctx, phase{pace: usual, concurrency: 1}, quietRuns)
		return err
	})
	return measured, g.Wait()
}

// saturated reports whether all slots of the worker for activities are taken.
func (s *site) saturated(ctx context.Context) (bool, error) {
	figures, err := scrape(ctx, s.metrics["worker"])
	if err != nil {
		return false, err
	}
	for name, value := range figures {
		if strings.HasPrefix(name, "temporal_worker_task_slots_available{") && strings.Contains(name, `worker_type="ActivityWorker"`) {
			return value == 0, nil
		}
	}
	return false, fmt.Errorf("%w: the worker has no metric of its slots", errRun)
}

// compare records the medians and the largest values of times of a tenant alone and during a flood,
// and the ratio of the medians.
func (s *site) compare(what string, alone, flooded []int64) {
	s.found(what+", alone, p50", millis(alone, 0.5), "ms")
	s.found(what+", alone, longest", float64(slices.Max(alone))/float64(time.Millisecond/time.Microsecond), "ms")
	s.found(what+", during the flood, p50", millis(flooded, 0.5), "ms")
	s.found(what+", during the flood, longest", float64(slices.Max(flooded))/float64(time.Millisecond/time.Microsecond), "ms")
	s.found(what+", ratio of the medians", millis(flooded, 0.5)/millis(alone, 0.5), "")
}

// waited records the median of the time before a model call, without the silence of the model.
func (s *site) waited(what string, of *sample) {
	s.found(what+", p50", millis(of.before, 0.5)-float64(speeches[usual].silence.Milliseconds()), "ms")
}
