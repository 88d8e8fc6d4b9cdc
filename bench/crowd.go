package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// audience has the viewers of one run.
type audience struct {
	*site
	watchers *watchers
	all      []*viewer
	deaf     []*viewer // the viewers that stop reading for some time

	times []int64 // times at which the first viewer received each event
	lag   []int64 // delays of the other viewers after the first one, for viewers that were connected
}

// crowd measures many viewers of one run: first while all of them read, then while one in a hundred
// does not read, until those have reconnected.
//
//	attach ──► all read ──► some stop reading ──► the API disconnects them ──► they reconnect ──► the run ends
func crowd(ctx context.Context, s *site, n int) error {
	a, err := newAudience(s, n)
	if err != nil {
		return err
	}
	defer a.watchers.close()
	if _, err := a.noteFootprint(ctx, "api", "before"); err != nil {
		return err
	}
	if err := a.attach(ctx); err != nil {
		return err
	}
	if err := a.calm(ctx); err != nil {
		return err
	}
	if err := a.lose(ctx); err != nil {
		return err
	}
	if err := a.finish(ctx); err != nil {
		return err
	}
	return a.leave(ctx)
}

// newAudience returns n viewers of a run, and before them the viewer that starts it. None is connected.
// One in a hundred is to stop reading.
func newAudience(s *site, n int) (*audience, error) {
	w, err := newWatchers(s.target.base)
	if err != nil {
		return nil, err
	}
	a := &audience{site: s, watchers: w}
	w.seen = a.seen
	p := wide
	if s.quick {
		p = wider
	}
	sample := &sample{}
	for i := range n + 1 {
		v := &viewer{scan: scan{dialect: s.target.dialect, wanted: speeches[p].tokens, sample: sample}}
		v.ask = func(after []byte) []byte { return getEvents("crowd", after) }
		if i == 0 {
			v.ask = func([]byte) []byte { return s.target.request(p, "crowd", "close") }
		} else if i%100 == 1 {
			v.narrow = true
			a.deaf = append(a.deaf, v)
		}
		a.all = append(a.all, v)
	}
	return a, nil
}

// getEvents requests the events of the run with the bench's ID.
func getEvents(id string, after []byte) []byte {
	request := fmt.Appendf(nil, "GET /v1/threads/thread-%s/runs/run-%s/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: text/event-stream\r\n", id, id)
	if len(after) > 0 {
		request = fmt.Appendf(request, "Last-Event-ID: %s\r\n", bytes.TrimSpace(after))
	}
	return append(request, "\r\n"...)
}

// seen notes that a viewer has received its next event at a time, in microseconds.
func (a *audience) seen(v *viewer, at int64) {
	i := v.events - 1
	if i == len(a.times) {
		a.times = append(a.times, at)
	}
	if a.times[i] >= v.scan.since {
		a.lag = append(a.lag, at-a.times[i])
	}
}

// attach connects all viewers, first the viewer that starts the run. The run continues meanwhile.
// Viewers that connect later read its earlier events.
func (a *audience) attach(ctx context.Context) error {
	if err := a.watchers.openAll(ctx, a.all[:1], 0); err != nil {
		return err
	}
	if err := a.watchers.watch(ctx, func() (bool, error) { return a.all[0].scan.tokens > 0, nil }); err != nil {
		return err
	}
	begun := time.Now()
	if err := a.watchers.openAll(ctx, a.all[1:], 0); err != nil {
		return err
	}
	a.found("until all are attached", time.Since(begun).Seconds(), "s")
	return a.watchers.watchFor(ctx, time.Second)
}

// window measures one part of the run.
func (a *audience) window(ctx context.Context, when string, pass func() error) error {
	before, err := a.footprint(ctx, "api")
	if err != nil {
		return err
	}
	a.lag = a.lag[:0]
	sample := a.all[0].scan.sample
	sample.added = sample.added[:0]
	if err := pass(); err != nil {
		return err
	}
	a.quantiles("lag after the first viewer, "+when, a.lag)
	a.quantiles("added per token, "+when, sample.added)
	after, err := a.noteFootprint(ctx, "api", when)
	if err != nil {
		return err
	}
	a.found("api, CPU, "+when, after.cores(before), "cores")
	a.found("events, "+when, float64(len(a.lag))/after.at.Sub(before.at).Seconds(), "1/s")
	memory, err := socketMemory()
	a.found("kernel, TCP buffers, "+when, memory/(1<<20), "MiB")
	return err
}

// calm measures the run while all viewers read. Before that, no viewer may have more than three events
// less than the first one.
func (a *audience) calm(ctx context.Context) error {
	for _, v := range a.all {
		if v.events != a.all[0].events && v.events+3 < a.all[0].events {
			return fmt.Errorf("%w: a viewer has %d events, the first one %d", errRun, v.events, a.all[0].events)
		}
	}
	d := 20 * time.Second
	if a.quick {
		d = 3 * time.Second
	}
	return a.window(ctx, "all read", func() error { return a.watchers.watchFor(ctx, d) })
}

// cutPatience is the maximum time for which viewers that do not read may stay connected: until their
// buffers are full, plus the write timeout of the API.
const cutPatience = 90 * time.Second

// cuts is the API's counter of viewers that it has disconnected.
const cuts = `perdure_viewers_ended_total{end="slow"}`

// lose makes some viewers stop reading, until the API has disconnected all of them.
func (a *audience) lose(ctx context.Context) error {
	for _, v := range a.deaf {
		if err := a.watchers.deafen(v); err != nil {
			return err
		}
	}
	begun := time.Now()
	var next time.Time
	err := a.window(ctx, "some do not", func() error {
		return a.watchers.watch(ctx, func() (bool, error) {
			if time.Now().Before(next) {
				return false, nil
			}
			next = time.Now().Add(time.Second)
			figures, err := scrape(ctx, a.metrics["api"])
			if err == nil && (time.Since(begun) > cutPatience || a.all[0].scan.ended) {
				err = fmt.Errorf("%w: %.0f of %d viewers that do not read have been cut after %s", errRun, figures[cuts], len(a.deaf), time.Since(begun).Round(time.Second))
			}
			return figures[cuts] >= float64(len(a.deaf)), err
		})
	})
	a.found("viewers that did not read, and were cut", float64(len(a.deaf)), "")
	a.found("… after", time.Since(begun).Seconds(), "s")
	return err
}

// finish lets the viewers that did not read drain their connection and reconnect after their last
// event, until all have the whole run. All viewers must have received the same events.
func (a *audience) finish(ctx context.Context) error {
	for _, v := range a.deaf {
		if err := a.watchers.listen(v); err != nil {
			return err
		}
	}
	back := 0
	err := a.watchers.watch(ctx, func() (bool, error) {
		for _, v := range a.deaf {
			if !v.cut {
				continue
			}
			back++
			if err := a.watchers.open(v); err != nil {
				return false, err
			}
		}
		return len(a.watchers.reading) == 0, nil
	})
	if err != nil {
		return err
	}
	if back < len(a.deaf) {
		return fmt.Errorf("%w: %d viewers came back of %d that were cut", errRun, back, len(a.deaf))
	}
	for i, v := range a.all {
		if err := a.all[0].same(v); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
	}
	a.found("events of the run, the same for all", float64(a.all[0].events), "")
	return nil
}

// leave measures the API after all viewers have disconnected.
func (a *audience) leave(ctx context.Context) error {
	err := until(ctx, func() (bool, error) {
		figures, err := scrape(ctx, a.metrics["api"])
		return figures["perdure_viewers"] == 0, err
	})
	if err == nil {
		_, err = a.noteFootprint(ctx, "api", "after")
	}
	return err
}
