package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load makes runs against one system, each on its own thread. Names of threads are never reused.
type load struct {
	target target
	next   atomic.Int64
}

// drive makes as many runs as a phase has, with a bounded number at a time. Each goroutine makes
// one run after another on its own connection. The first invalid run ends the load.
func (l *load) drive(ctx context.Context, ph phase, runs int) (*sample, error) {
	var left atomic.Int64
	left.Store(int64(runs))
	return l.driveWhile(ctx, ph, func() bool { return left.Add(-1) >= 0 })
}

// driveWhile continues as long as there is another run to make.
func (l *load) driveWhile(ctx context.Context, ph phase, another func() bool) (*sample, error) {
	var (
		mu    sync.Mutex
		total sample
	)
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for i := range ph.users() {
		g.Go(func() error {
			s, err := l.user(ctx, ph.pace, another, func(n int) time.Duration { return time.Until(begun.Add(ph.begin(i, n))) })
			mu.Lock()
			defer mu.Unlock()
			total.add(s)
			return err
		})
	}
	return &total, g.Wait()
}

// user returns one client that makes one run after another. until returns how long it waits before its
// n-th run.
func (l *load) user(ctx context.Context, p pace, another func() bool, until func(n int) time.Duration) (*sample, error) {
	s := &sample{}
	if err := wait(ctx, until(0)); err != nil { // before it connects: servers close connections that send no request
		return s, err
	}
	c, err := dial(ctx, l.target)
	if err != nil {
		return s, err
	}
	defer c.close()
	for n := 0; another(); n++ {
		if err := wait(ctx, until(n)); err != nil {
			return s, err
		}
		id := fmt.Sprintf("bench-%d", l.next.Add(1))
		if err := c.run(p, id, s); err != nil {
			return s, fmt.Errorf("run %s: %w", id, err)
		}
	}
	return s, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
