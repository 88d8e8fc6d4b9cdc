package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// profileTime is how long each phase continues while it is profiled.
const profileTime = 15 * time.Second

// profile takes a CPU profile of perdure dev in each phase and of a pipeline's steps, and for a
// crowd a memory profile too. It runs after the measurement, because profiling has a cost and needs
// longer phases.
func (b *bench) profile(ctx context.Context) (err error) {
	if err := os.MkdirAll(b.plan.profiles, 0o755); err != nil { //nolint:gosec // to be read by everybody
		return err
	}
	r, err := b.start(ctx, systemOf("dev"), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	l := &load{target: r.target}
	for _, ph := range b.plan.phases {
		file := filepath.Join(b.plan.profiles, ph.name+".pprof")
		b.tell("profiling %s into %s", ph.name, file)
		if err := profilePhase(ctx, r.pprof, file, l, ph); err != nil {
			return fmt.Errorf("profile of %s: %w", ph.name, err)
		}
	}
	if b.plan.Pipelines["steps"] > 0 {
		if err := b.profileSteps(ctx, r); err != nil {
			return fmt.Errorf("profile of steps: %w", err)
		}
	}
	if n := b.plan.Scales["crowd"]; n > 0 {
		return b.profileCrowd(ctx, r, n)
	}
	return nil
}

// profileCrowd profiles the CPU time and the memory of many viewers of one run.
func (b *bench) profileCrowd(ctx context.Context, r *running, n int) error {
	a, err := newAudience(&site{running: r, bench: b, quick: b.plan.quick}, n)
	if err != nil {
		return err
	}
	defer a.watchers.close()
	if err := a.attach(ctx); err != nil {
		return err
	}
	b.tell("profiling crowd")
	taken := make(chan error, 1)
	go func() {
		err := download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", r.pprof, int(profileTime.Seconds())), filepath.Join(b.plan.profiles, "crowd.pprof"))
		taken <- errors.Join(err, download(ctx, r.pprof+"/debug/pprof/heap", filepath.Join(b.plan.profiles, "crowd-heap.pprof")))
	}()
	return a.watchers.watch(ctx, func() (bool, error) {
		select {
		case err := <-taken:
			return true, err
		default:
			return false, nil
		}
	})
}

// profileOf runs a load while it records the profile.
func profileOf(ctx context.Context, pprof, file string, keep func(another func() bool) error) error {
	var done atomic.Bool
	taken := make(chan error, 1)
	go func() {
		defer done.Store(true)
		taken <- download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", pprof, int(profileTime.Seconds())), file)
	}()
	err := keep(func() bool { return !done.Load() })
	return errors.Join(err, <-taken)
}

// profilePhase profiles a phase, after runs that warm the system up.
func profilePhase(ctx context.Context, pprof, file string, l *load, ph phase) error {
	if _, err := l.drive(ctx, ph, max(ph.warmup, ph.concurrency)); err != nil {
		return err
	}
	return profileOf(ctx, pprof, file, func(another func() bool) error {
		_, err := l.driveWhile(ctx, ph, another)
		return err
	})
}

// walkersAtOnce is how many pipelines are active while they are profiled.
const walkersAtOnce = 4

// profileSteps profiles the steps of a pipeline.
func (b *bench) profileSteps(ctx context.Context, r *running) error {
	b.tell("profiling steps")
	var next atomic.Int64
	return profileOf(ctx, r.pprof, filepath.Join(b.plan.profiles, "steps.pprof"), func(another func() bool) error {
		g, ctx := errgroup.WithContext(ctx)
		for range walkersAtOnce {
			g.Go(func() error {
				for another() {
					if _, err := r.runToEnd(ctx, "many", runBody(fmt.Sprintf("walk-%d", next.Add(1)), "{}"), nil); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	})
}

// download writes the response of a GET request to a file.
func download(ctx context.Context, url, file string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, resp.Body)
	return err
}
