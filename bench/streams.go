package main

import (
	"context"
	"fmt"
	"time"
)

// streams measures many concurrent runs, each with the viewer that started it. The latency added to
// each token is measured while all of them stream.
func streams(ctx context.Context, s *site, n int) error {
	w, err := newWatchers(s.target.base)
	if err != nil {
		return err
	}
	defer w.close()
	p, spread := slow, 40*time.Second
	if s.quick {
		p, spread = brief, 5*time.Second
	}
	outside := &sample{} // before all runs stream, and after
	viewers := make([]*viewer, n)
	for i := range viewers {
		viewers[i] = &viewer{
			ask:  func([]byte) []byte { return s.target.request(p, fmt.Sprintf("stream-%d", i), "close") },
			scan: scan{dialect: s.target.dialect, wanted: speeches[p].tokens, sample: outside},
		}
	}
	for _, name := range []string{"api", "worker", "servers"} {
		if _, err := s.noteFootprint(ctx, name, "before"); err != nil {
			return err
		}
	}
	if err := w.openAll(ctx, viewers, spread/time.Duration(n)); err != nil {
		return err
	}
	begun := time.Now()
	if err := w.watch(ctx, func() (bool, error) { return all(viewers, func(v *viewer) bool { return v.scan.tokens > 0 }), nil }); err != nil {
		return err
	}
	s.found("from the last request to all speaking", time.Since(begun).Seconds(), "s")
	s.quantiles("first token", outside.first)
	if err := s.together(ctx, w, viewers); err != nil {
		return err
	}
	for _, v := range viewers {
		v.scan.sample = outside
	}
	if err := w.watch(ctx, func() (bool, error) { return len(w.reading) == 0, nil }); err != nil {
		return err
	}
	for i, v := range viewers {
		if err := v.scan.check(); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
	}
	s.found("runs that ended well, each token once and in order", float64(n), "")
	return nil
}

// together measures while all runs stream: until the first of them ends.
func (s *site) together(ctx context.Context, w *watchers, viewers []*viewer) error {
	names := []string{"api", "worker", "servers"}
	before := map[string]footprint{}
	for _, name := range names {
		var err error
		if before[name], err = s.footprint(ctx, name); err != nil {
			return err
		}
	}
	speaking := &sample{}
	for _, v := range viewers {
		v.scan.sample = speaking
	}
	begun := time.Now()
	if err := w.watch(ctx, func() (bool, error) { return len(w.reading) < len(viewers), nil }); err != nil {
		return err
	}
	if all(viewers, func(v *viewer) bool { return v.scan.ended }) || len(speaking.added) == 0 {
		return fmt.Errorf("%w: the runs did not speak at once", errRun)
	}
	s.found("time in which all spoke", time.Since(begun).Seconds(), "s")
	s.found("tokens", float64(len(speaking.added))/time.Since(begun).Seconds(), "1/s")
	s.quantiles("added per token", speaking.added)
	for _, name := range names {
		after, err := s.noteFootprint(ctx, name, "all speaking")
		if err != nil {
			return err
		}
		s.found(name+", CPU", after.cores(before[name]), "cores")
	}
	return nil
}

func all(viewers []*viewer, is func(*viewer) bool) bool {
	for _, v := range viewers {
		if !is(v) {
			return false
		}
	}
	return true
}
