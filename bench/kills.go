package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// killedStreams is how many runs stream when a worker is killed. Two workers share them.
const killedStreams = 10

// kills measures how soon a run continues on another worker. Two workers share paced runs; the older one
// is killed with SIGKILL while all runs stream, n times. A new worker replaces it after the runs have
// ended.
func kills(ctx context.Context, s *site, n int) error {
	var took []int64
	first := s.process("worker")
	if err := s.ready(ctx, first); err != nil {
		return err
	}
	workers := []*process{first}
	for i := range n {
		w, err := s.startWorker()
		if err != nil {
			return err
		}
		if err := s.ready(ctx, w); err != nil {
			return err
		}
		workers = append(workers, w)
		lost, err := s.loseWorker(ctx, workers[i], i)
		if err != nil {
			return fmt.Errorf("kill %d: %w", i, err)
		}
		s.bench.tell("  kill %d: %d runs continued", i+1, len(lost))
		took = append(took, lost...)
	}
	if len(took) == 0 {
		return fmt.Errorf("%w: no killed worker had a run", errRun)
	}
	s.found("runs that continued on another worker", float64(len(took)), "")
	s.found("kill to next token, p50", millis(took, 0.5), "ms")
	s.found("kill to next token, longest", millis(took, 1), "ms")
	return nil
}

// loseWorker kills a worker while runs stream, and reads the runs to their ends. It returns the times
// from the kill to the next token, in microseconds, of the runs that the worker had.
func (s *site) loseWorker(ctx context.Context, w *process, round int) ([]int64, error) {
	var (
		killed   atomic.Int64
		speaking sync.WaitGroup
	)
	all := make([]*survivor, killedStreams)
	g, gctx := errgroup.WithContext(ctx)
	for i := range all {
		all[i] = &survivor{killed: &killed}
		speaking.Add(1)
		all[i].spoke = sync.OnceFunc(speaking.Done)
		g.Go(func() error {
			defer all[i].spoke() // after a failure too
			if err := all[i].run(gctx, s.running, fmt.Sprintf("kill-%d-%d", round, i)); err != nil {
				return fmt.Errorf("run %d: %w", i, err)
			}
			return nil
		})
	}
	speaking.Wait()
	killed.Store(micros())
	if err := w.kill(); err != nil {
		return nil, err
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var took []int64
	for _, v := range all {
		if v.took > 0 {
			took = append(took, v.took)
		}
	}
	return slices.Clip(took), nil
}

// survivor reads one run that must survive the death of its worker.
type survivor struct {
	killed *atomic.Int64 // time of the kill, 0 before it
	spoke  func()        // called with the first token
	tokens int           // of the last attempt
	took   int64         // from the kill to the first token of the attempt after it; 0 = it was on another worker
}

func (v *survivor) run(ctx context.Context, r *running, thread string) error {
	if _, err := r.runToEnd(ctx, string(paced), runBody(thread, "{}"), v.event); err != nil {
		return err
	}
	if wanted := speeches[paced].tokens; v.tokens != wanted {
		return fmt.Errorf("%w: %d tokens of %d", errRun, v.tokens, wanted)
	}
	return nil
}

// event takes the tokens of an event. A new attempt begins with the first token again.
func (v *survivor) event(event []byte) error {
	_, text, ok := bytes.Cut(event, dialectAGUI.token)
	if !ok {
		return nil
	}
	text, _, _ = bytes.Cut(text, []byte{'"'})
	for len(text) > 0 {
		index, _, rest, err := cutToken(text)
		if err != nil {
			return fmt.Errorf("%w: %w", errRun, err)
		}
		if killed := v.killed.Load(); index == 0 && v.tokens > 0 {
			if killed == 0 || v.took > 0 {
				return fmt.Errorf("%w: a second attempt without a kill", errRun)
			}
			v.took, v.tokens = micros()-killed, 0
		}
		if index != v.tokens {
			return fmt.Errorf("%w: token %d comes where %d must be", errRun, index, v.tokens)
		}
		v.tokens++
		v.spoke()
		text = rest
	}
	return nil
}
