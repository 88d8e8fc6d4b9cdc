package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/perdure/perdure/agui"
)

// errUnknown is a response 503. The same request can be repeated safely.
var errUnknown = errors.New("it is unknown whether that took effect")

// callers keep their connections alive, as a load balancer does.
var callers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * parkedAtOnce}}

const (
	// longRun bounds the duration of a run of steps.
	longRun = 5 * time.Minute
	// eventBytes bounds an event: a snapshot has the whole outcome of the run.
	eventBytes = 4 << 20
)

// runBody returns the input of a thread's run.
func runBody(thread, state string) []byte {
	return fmt.Appendf(nil, `{"threadId":%q,"runId":"run-%s","protocolVersion":"1.0","messages":[{"id":"m1","role":"user","content":"Count."}],"tools":[],"context":[],"state":%s,"forwardedProps":{}}`,
		thread, thread, state)
}

// runToEnd executes a run and reads it to its end, which must not be an error. see, if given, is
// called with each event as it arrives.
func (r *running) runToEnd(ctx context.Context, agent string, body []byte, see func(event []byte) error) (*agui.RunFinished, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longRun, errors.New("the run took too long"))
	defer cancel()
	events, err := backoff.Retry(ctx, func() (io.ReadCloser, error) {
		events, err := r.post(ctx, "/v1/agents/"+agent+"/runs", body)
		if err != nil && !errors.Is(err, errUnknown) {
			err = backoff.Permanent(err)
		}
		return events, err
	})
	if err != nil {
		return nil, err
	}
	defer events.Close()
	return readToEnd(events, see)
}

// readToEnd reads the events of a run, and returns its terminal event. A run that fails, or that has no
// or another event after the terminal one, is an errRun.
func readToEnd(events io.Reader, see func(event []byte) error) (end *agui.RunFinished, err error) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, eventBytes)
	for lines.Scan() {
		event, is := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		switch {
		case !is: // an id, a comment or the blank line between events
			continue
		case bytes.Contains(event, dialectAGUI.failure):
			return nil, fmt.Errorf("%w: %s", errRun, event)
		case end != nil:
			return nil, fmt.Errorf("%w: an event follows the terminal event: %s", errRun, event)
		case bytes.Contains(event, dialectAGUI.end):
			if end, err = finishedOf(event); err != nil {
				return nil, err
			}
		}
		if see != nil {
			if err := see(event); err != nil {
				return nil, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if end == nil {
		return nil, fmt.Errorf("%w: no terminal event", errRun)
	}
	return end, nil
}

// finishedOf decodes a terminal event, which must not be an error.
func finishedOf(event []byte) (*agui.RunFinished, error) {
	e, err := agui.Decode(event)
	if err != nil {
		return nil, err
	}
	end, ok := e.(*agui.RunFinished)
	if !ok {
		return nil, fmt.Errorf("%w: %s", errRun, event)
	}
	return end, nil
}

// post sends a request and returns the stream of the response, which must be successful.
func (r *running) post(ctx context.Context, path string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.target.base+path, bytes.NewReader(body))
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
		failed := fmt.Errorf("%w: %s: %s: %s", errRun, path, resp.Status, text)
		if resp.StatusCode == http.StatusServiceUnavailable {
			failed = fmt.Errorf("%w: %w", errUnknown, failed)
		}
		return nil, failed
	}
	return resp.Body, nil
}
