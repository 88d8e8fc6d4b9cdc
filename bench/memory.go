package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// memory measures the memory of perdure dev: idle, after n runs, and with n parked runs. At the end it
// approves some of the parked runs, one at a time.
func memory(ctx context.Context, s *site, n int) error {
	if err := wait(ctx, idleTime); err != nil {
		return err
	}
	if _, err := s.noteFootprint(ctx, "dev", "idle"); err != nil {
		return err
	}
	l := &load{target: s.target}
	if _, err := l.drive(ctx, phase{pace: instant, concurrency: parkedAtOnce}, n); err != nil {
		return err
	}
	if _, err := s.noteFootprint(ctx, "dev", fmt.Sprintf("after %d runs", n)); err != nil {
		return err
	}
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	lot := &lot{site: s, temporal: c}
	if err := lot.park(ctx, n); err != nil {
		return err
	}
	if _, err := s.noteFootprint(ctx, "dev", fmt.Sprintf("%d parked", n)); err != nil {
		return err
	}
	var took []int64
	for _, i := range rand.Perm(n)[:min(resumed, n)] { //nolint:gosec // a random sample
		t, err := s.approve(ctx, parkedID(i), lot.questions[i])
		if err != nil {
			return fmt.Errorf("parked run %d: %w", i, err)
		}
		took = append(took, t)
	}
	s.quantiles(fmt.Sprintf("approval to next event, %d parked", n), took)
	return nil
}
