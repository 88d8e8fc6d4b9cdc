package main

import "context"

// text measures a whole run of one model call: its history too, which the systems do not show.
func text(ctx context.Context, d *duel, n int) error {
	all, err := d.alternate(ctx, n, func(ctx context.Context) (outcome, error) {
		o, s, err := d.speech(ctx, instant)
		if err != nil {
			return o, err
		}
		return o, s.complete(1)
	}, func(ctx context.Context) (outcome, error) {
		return d.temporally(ctx, "text", plainWork{}, func(_ *outcome, done plainDone) error { return done.Spoken.complete(1) })
	})
	if err != nil {
		return err
	}
	d.note("a run", "ms", middle(all[0], outcome.wallMillis), middle(all[1], outcome.wallMillis))
	d.note("… CPU of all processes", "ms", mean(all[0], outcome.cpuMillis), mean(all[1], outcome.cpuMillis))
	d.note("… history, events", "", middle(all[0], outcome.historyEvents), middle(all[1], outcome.historyEvents))
	d.note("… history", "bytes", middle(all[0], outcome.historyBytes), middle(all[1], outcome.historyBytes))
	return nil
}
