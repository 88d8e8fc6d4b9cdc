package main

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agui"
)

// Tokens after which a run is cancelled: while its model call is in the workflow task, and after the call
// was handed over to an activity.
const (
	earlyTokens = 20
	lateTokens  = 150
)

// cancels measures the time from a cancel to the end of the run, one run at a time, while its model
// streams.
func cancels(ctx context.Context, s *site, n int) error {
	for _, when := range []struct {
		name   string
		tokens int
	}{{"in the workflow task", earlyTokens}, {"after the hand-over", lateTokens}} {
		times := make([]int64, n)
		for i := range n {
			var err error
			if times[i], err = s.cancel(ctx, fmt.Sprintf("cancel-%d-%d", when.tokens, i), when.tokens); err != nil {
				return fmt.Errorf("run %d, cancelled %s: %w", i, when.name, err)
			}
		}
		s.quantiles("cancel to the run's end, "+when.name, times)
	}
	return nil
}

// cancel makes a run, cancels it after a number of tokens, and returns the time until its end in
// microseconds.
func (s *site) cancel(ctx context.Context, id string, tokens int) (took int64, err error) {
	var begun int64
	received := 0
	cancelling, ctx := errgroup.WithContext(ctx)
	end, err := s.runToEnd(ctx, string(lasting), s.target.body(lasting, id), func(event []byte) error {
		if !bytes.Contains(event, dialectAGUI.token) {
			return nil
		}
		if received++; received == tokens {
			begun = micros()
			cancelling.Go(func() error {
				accepted, err := s.post(ctx, "/v1/threads/thread-"+id+"/runs/run-"+id+"/cancel", []byte(`{}`))
				if err != nil {
					return err
				}
				return accepted.Close()
			})
		}
		return nil
	})
	took = micros() - begun
	if failed := cancelling.Wait(); failed != nil {
		return 0, failed
	}
	if err == nil && (end.Outcome == nil || end.Outcome.Type != agui.OutcomeCancelled) {
		err = fmt.Errorf("%w: it was not cancelled", errRun)
	}
	return took, err
}
