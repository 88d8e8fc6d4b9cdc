package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

const (
	// parkedWarmup are the runs whose parking brings api and worker to the size that starting runs
	// needs; only what is parked behind them is counted.
	parkedWarmup = 400
	parkedAtOnce = 50
	resumed      = 100 // runs that go on at the end
	// parkedBound is the most that a parked run may add to a process, in bytes.
	parkedBound = 10 << 10
)

// parked measures what a run costs that waits for a person: each calls a tool, is paused behind that,
// and is parked. Some of them go on in the end.
func parked(ctx context.Context, s *site, n int) error {
	names := []string{"api", "worker"}
	if err := s.park(ctx, 0, parkedWarmup); err != nil {
		return err
	}
	before := map[string]footprint{}
	for _, name := range names {
		var err error
		if before[name], err = s.noteFootprint(ctx, name, fmt.Sprintf("%d parked", parkedWarmup)); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := s.park(ctx, parkedWarmup, n); err != nil {
		return err
	}
	s.found("until all were parked", time.Since(begun).Seconds(), "s")
	for _, name := range names {
		after, err := s.noteFootprint(ctx, name, fmt.Sprintf("%d parked", parkedWarmup+n))
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
	return s.resume(ctx, parkedWarmup+n)
}

// park starts runs, pauses each while it speaks before its tool call, and waits until all are parked.
func (s *site) park(ctx context.Context, first, n int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parkedAtOnce)
	for i := range n {
		g.Go(func() error {
			if err := s.pause(gctx, parkedID(first+i)); err != nil {
				return fmt.Errorf("run %d: %w", first+i, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: s.temporal, Namespace: s.namespace})
	if err != nil {
		return err
	}
	defer c.Close()
	return until(ctx, func() (bool, error) {
		count, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: s.namespace, Query: `WorkflowType = "thread.parked.v1" AND ExecutionStatus = "Running"`,
		})
		return count.GetCount() == int64(first+n), err
	})
}

func parkedID(i int) string { return fmt.Sprintf("parked-%d", i) }

// pause starts a run and pauses it.
func (s *site) pause(ctx context.Context, id string) error {
	events, err := s.call(ctx, http.MethodPost, s.target.path(calling), s.target.body(calling, id))
	if err != nil {
		return err
	}
	defer events.Close()
	lines := bufio.NewScanner(events)
	if err := seek(lines, `"TEXT_MESSAGE_CONTENT"`); err != nil {
		return err
	}
	if err := s.tell(ctx, id, "pause"); err != nil {
		return err
	}
	return seek(lines, `"TOOL_CALL_RESULT"`)
}

// resume lets runs at random go on, and waits for their end.
func (s *site) resume(ctx context.Context, n int) error {
	var ended atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for _, i := range rand.Perm(n)[:min(resumed, n)] { //nolint:gosec // any will do
		g.Go(func() error {
			id := parkedID(i)
			if err := s.tell(ctx, id, "resume"); err != nil {
				return err
			}
			events, err := s.call(ctx, http.MethodGet, "/v1/threads/thread-"+id+"/runs/run-"+id+"/events", nil)
			if err != nil {
				return err
			}
			defer events.Close()
			if err := seek(bufio.NewScanner(events), `"RUN_FINISHED"`); err != nil {
				return fmt.Errorf("run %d: %w", i, err)
			}
			ended.Add(1)
			return nil
		})
	}
	err := g.Wait()
	s.found("runs that went on, at random, and ended well", float64(ended.Load()), "")
	s.found("… within", time.Since(begun).Seconds(), "s")
	return err
}

// tell pauses a run, or lets it go on. Where it is unknown whether that took effect it is told again.
func (s *site) tell(ctx context.Context, id, what string) error {
	_, err := backoff.Retry(ctx, func() (bool, error) {
		answer, err := s.call(ctx, http.MethodPost, "/v1/threads/thread-"+id+"/"+what, nil)
		switch {
		case errors.Is(err, errUnknown):
			return false, err
		case err != nil:
			return false, backoff.Permanent(err)
		}
		return true, answer.Close()
	})
	return err
}

// errUnknown is an answer 503: the same again is safe.
var errUnknown = errors.New("it is unknown whether that took effect")

// callers keep their connections, as those of a load balancer do.
var callers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * parkedAtOnce}}

// call returns the body of an answer, which must be a success.
func (s *site) call(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.target.base+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	resp, err := callers.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		failed := fmt.Errorf("%w: %s %s: %s: %s", errRun, method, path, resp.Status, text)
		if resp.StatusCode == http.StatusServiceUnavailable {
			failed = fmt.Errorf("%w: %w", errUnknown, failed)
		}
		return nil, failed
	}
	return resp.Body, nil
}

// seek reads up to a line that has a text.
func seek(lines *bufio.Scanner, text string) error {
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return nil
		}
		if strings.Contains(lines.Text(), `"RUN_ERROR"`) {
			return fmt.Errorf("%w: %s", errRun, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: no %s", errRun, text)
}

// until waits for something that a server is asked for.
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
