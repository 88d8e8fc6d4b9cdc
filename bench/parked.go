package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

const (
	// parkedWarmup is the number of parked runs that bring the API and the worker to their working
	// size. Only runs parked after them are counted.
	parkedWarmup = 400
	parkedAtOnce = 50
	parkedParts  = 5   // parts of the parked runs; the cost is measured after each part
	resumed      = 100 // runs that continue at the end
	// parkedBound is the maximum number of bytes that a parked run may add to a process.
	parkedBound = 10 << 10
)

// parked measures the cost of a run that waits for a person: each run calls a tool that needs a
// decision, ends with that interrupt, and is parked. At the end the bench decides some interrupts.
func parked(ctx context.Context, s *site, n int) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	lot := &lot{site: s, temporal: c}
	if err := lot.park(ctx, parkedWarmup); err != nil {
		return err
	}
	names := []string{"api", "worker"}
	before := map[string]footprint{}
	for _, name := range names {
		if before[name], err = s.noteFootprint(ctx, name, fmt.Sprintf("%d parked", len(lot.questions))); err != nil {
			return err
		}
	}
	if err := lot.fill(ctx, n); err != nil {
		return err
	}
	for _, name := range names {
		after, err := s.noteFootprint(ctx, name, fmt.Sprintf("%d parked", len(lot.questions)))
		if err != nil {
			return err
		}
		each := (after.rss - before[name].rss) / float64(n)
		s.found(name+", RSS for each parked run", each/1024, "KiB")
		s.found(name+", Go heap for each parked run", (after.heap-before[name].heap)/float64(n)/1024, "KiB")
		if n >= 1000 && each > parkedBound {
			return fmt.Errorf("%w: a parked run costs %s %.0f bytes", errRun, name, each)
		}
	}
	return lot.resume(ctx)
}

// lot parks runs.
type lot struct {
	*site
	temporal  client.Client
	questions []string // IDs of the interrupts that the runs ended with
}

// fill parks runs in several parts, and records the cost of the first part and of the last one: a
// run must not cost more because other runs are parked.
func (l *lot) fill(ctx context.Context, n int) error {
	begun := time.Now()
	for part := range parkedParts {
		if err := l.fillPart(ctx, part, n*(part+1)/parkedParts-n*part/parkedParts); err != nil {
			return err
		}
	}
	l.found("until all were parked", time.Since(begun).Seconds(), "s")
	return nil
}

// fillPart parks n runs as one of the parts, and records the cost of the first and of the last part.
func (l *lot) fillPart(ctx context.Context, part, n int) error {
	cpu, err := l.cpu()
	if err != nil || n == 0 {
		return err
	}
	begun := time.Now()
	if err := l.park(ctx, n); err != nil {
		return err
	}
	after, err := l.cpu()
	if err != nil {
		return err
	}
	seconds, each := time.Since(begun).Seconds(), (after-cpu).Seconds()*1000/float64(n)
	l.bench.tell("  %d parked, the last %d within %.1f s", len(l.questions), n, seconds)
	if what := map[int]string{0: "the first", parkedParts - 1: "the last"}[part]; what != "" {
		l.found(fmt.Sprintf("%s %d of them", what, n), seconds, "s")
		l.found(fmt.Sprintf("%s %d of them, CPU for each", what, n), each, "ms")
	}
	return nil
}

// park starts runs, each of which ends with an interrupt, and waits until all are parked.
func (l *lot) park(ctx context.Context, n int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parkedAtOnce)
	first := len(l.questions)
	l.questions = append(l.questions, make([]string, n)...)
	for i := first; i < first+n; i++ {
		g.Go(func() (err error) {
			if l.questions[i], err = l.ask(gctx, parkedID(i)); err != nil {
				return fmt.Errorf("run %d: %w", i, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		count, err := l.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: l.namespace, Query: `WorkflowType = "thread.parked.v1" AND ExecutionStatus = "Running"`,
		})
		return count.GetCount() == int64(len(l.questions)), err
	})
}

func parkedID(i int) string { return fmt.Sprintf("parked-%d", i) }

// resume decides some of the interrupts, picked at random, and waits until the continued runs end.
func (l *lot) resume(ctx context.Context) error {
	var ended atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for _, i := range rand.Perm(len(l.questions))[:min(resumed, len(l.questions))] { //nolint:gosec // a random sample
		g.Go(func() error {
			if _, err := l.approve(ctx, parkedID(i), l.questions[i]); err != nil {
				return fmt.Errorf("run %d: %w", i, err)
			}
			ended.Add(1)
			return nil
		})
	}
	err := g.Wait()
	l.found("random runs that continued, and succeeded", float64(ended.Load()), "")
	l.found("… within", time.Since(begun).Seconds(), "s")
	return err
}

// until waits for a condition of a server.
func until(ctx context.Context, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := is(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
