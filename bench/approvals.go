package main

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agui"
)

// approvals measures the time from an approval to the next event of its thread, one run at a time: right
// after the run ended with the interrupt, and in a held run.
func approvals(ctx context.Context, s *site, n int) error {
	ended, held := make([]int64, n), make([]int64, n)
	for i := range n {
		id := fmt.Sprintf("ended-%d", i)
		interrupt, err := s.ask(ctx, id)
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		if ended[i], err = s.approve(ctx, id, interrupt); err != nil {
			return fmt.Errorf("run %d, approved after its end: %w", i, err)
		}
		if held[i], err = s.hold(ctx, fmt.Sprintf("held-%d", i)); err != nil {
			return fmt.Errorf("held run %d: %w", i, err)
		}
	}
	s.quantiles("approval to next event, right after the run's end", ended)
	s.quantiles("approval to next event, held run", held)
	return nil
}

// ask makes a run and returns the ID of the interrupt that it ends with.
func (s *site) ask(ctx context.Context, id string) (string, error) {
	end, err := s.runToEnd(ctx, string(asking), s.target.body(asking, id), nil)
	if err != nil {
		return "", err
	}
	if end.Outcome == nil || len(end.Outcome.Interrupts) != 1 {
		return "", fmt.Errorf("%w: it ended without a question", errRun)
	}
	return end.Outcome.Interrupts[0].ID, nil
}

// approve approves the interrupt of an ended run, reads the continued run to its end, and returns the
// time until its first event in microseconds.
func (s *site) approve(ctx context.Context, id, interrupt string) (took int64, err error) {
	body := fmt.Appendf(nil, `{"threadId":"thread-%s","runId":"on-%s","protocolVersion":"1.0","messages":[],"tools":[],"context":[],"state":{},"forwardedProps":{},`+
		`"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]}`, id, id, interrupt)
	begun := micros()
	end, err := s.runToEnd(ctx, string(asking), body, func([]byte) error {
		if took == 0 {
			took = micros() - begun
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return took, succeeded(end)
}

// hold makes a held run, approves its interrupt, and returns the time until its next event in
// microseconds.
func (s *site) hold(ctx context.Context, id string) (took int64, err error) {
	body := bytes.Replace(s.target.body(asking, id), []byte(`"forwardedProps":{}`), []byte(`"forwardedProps":{"perdure":{"hold":true}}`), 1)
	var begun int64
	approving, ctx := errgroup.WithContext(ctx)
	end, err := s.runToEnd(ctx, string(asking), body, func(event []byte) error {
		if begun > 0 {
			if took == 0 {
				took = micros() - begun
			}
			return nil
		}
		interrupt, ok := announced(event)
		if !ok {
			return nil
		}
		begun = micros()
		approving.Go(func() error {
			recorded, err := s.post(ctx, "/v1/threads/thread-"+id+"/approvals/"+interrupt, []byte(`{"decision":"approve"}`))
			if err != nil {
				return err
			}
			return recorded.Close()
		})
		return nil
	})
	if failed := approving.Wait(); failed != nil {
		return 0, failed
	}
	if err == nil && took == 0 {
		err = fmt.Errorf("%w: it asked nothing", errRun)
	}
	if err != nil {
		return 0, err
	}
	return took, succeeded(end)
}

// announced returns the ID of the interrupt that an event of a held run announces.
func announced(event []byte) (string, bool) {
	_, value, ok := bytes.Cut(event, []byte(`"name":"perdure.approval"`))
	if !ok {
		return "", false
	}
	_, id, ok := bytes.Cut(value, []byte(`"id":"`))
	if !ok {
		return "", false
	}
	id, _, ok = bytes.Cut(id, []byte{'"'})
	return string(id), ok
}

// succeeded checks that a run ended well.
func succeeded(end *agui.RunFinished) error {
	if end.Outcome != nil && end.Outcome.Type != agui.OutcomeSuccess {
		return fmt.Errorf("%w: it ended with %s", errRun, end.Outcome.Type)
	}
	return nil
}
