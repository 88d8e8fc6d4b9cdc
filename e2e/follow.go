package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// follower reads one run as a careful client does: with the id of the last event it comes back
// whenever its connection ends before the run does. What it has read when its test ends is
// recorded.
type follower struct {
	p     *endpoint // may be another one for the next connection
	in    input
	agent string // path
	// view is the path by which it attaches while it has no id; "" = it sends the input.
	view   string
	events []event
	stream *eventStream
	ctx    context.Context
	// comebacks counts how often the reader came back with an id.
	comebacks int
}

// follow starts a run, or attaches to it, and returns its reader.
func (p *endpoint) follow(t *testing.T, in input) *follower {
	t.Helper()
	return p.followAgent(t, assistant, in)
}

// followAgent is follow for another agent than the usual one.
func (p *endpoint) followAgent(t *testing.T, path string, in input) *follower {
	t.Helper()
	f := p.reader(t, in)
	f.agent = path
	if err := f.connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// reader returns a reader of a run that connects when it is read.
func (p *endpoint) reader(t *testing.T, in input) *follower {
	p.threads.use(in.ThreadID)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	f := &follower{p: p, in: in, agent: assistant, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		f.cut()
		if err := recorded.keep(t.Name(), f); err != nil {
			t.Error(err)
		}
	})
	return f
}

// quiet returns a reader that ctx bounds and no test owns. What it reads is not recorded for the
// judge.
func (p *endpoint) quiet(ctx context.Context, in input) *follower {
	p.threads.use(in.ThreadID)
	return &follower{p: p, in: in, agent: assistant, ctx: ctx}
}

// behind returns a reader that has had the first events of a run.
func (p *endpoint) behind(t *testing.T, in input, had []event) *follower {
	t.Helper()
	f := p.reader(t, in)
	f.events = slices.Clone(had)
	if err := f.connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// run starts a run and reads it to its end.
func (p *endpoint) run(t *testing.T, in input) []event {
	t.Helper()
	f := p.follow(t, in)
	f.finish(t)
	return f.events
}

// connect opens a stream: by the last event id, or, while there is none, from the beginning.
func (f *follower) connect() error {
	if _, err := f.p.addresses(f.ctx); err != nil {
		return err
	}
	var resp *http.Response
	var err error
	last := f.last()
	if last == "" {
		f.events = nil // of a join's beginning, which has no ids; it comes again
	}
	switch {
	case f.view != "":
		resp, err = f.p.get(f.ctx, f.view, last)
	case last != "":
		resp, err = f.p.get(f.ctx, eventsPath(f.in), last)
	default:
		resp, err = f.p.post(f.ctx, f.agent, f.in)
	}
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		return &statusError{status: resp.StatusCode, body: string(body)}
	}
	f.stream, err = readEvents(resp)
	return err
}

// last returns the id of the last event.
func (f *follower) last() string {
	if len(f.events) == 0 {
		return ""
	}
	return f.events[len(f.events)-1].ID
}

// cut drops the connection.
func (f *follower) cut() {
	if f.stream != nil {
		_ = f.stream.Close()
		f.stream = nil
	}
}

// next reads one event, over as many connections as that takes.
func (f *follower) next() (event, error) {
	for {
		err := f.ctx.Err()
		if f.stream != nil {
			var e event
			if e, err = f.stream.next(); err == nil {
				f.events = append(f.events, e)
				return e, nil
			}
			f.cut()
		}
		if f.ctx.Err() != nil {
			return event{}, fmt.Errorf("run %s of %s, %d events read: %w", f.in.RunID, f.in.ThreadID, len(f.events), errors.Join(f.ctx.Err(), err))
		}
		if len(f.events) > 0 {
			f.comebacks++
		}
		if err := f.connect(); err != nil && !passing(err) {
			return event{}, err
		}
	}
}

// statusError is an answer that is no stream.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.status, e.body) }

// passing reports whether the same request may succeed soon: nobody listens just now, whoever did
// is gone, or it is unknown whether the request took effect.
func passing(err error) bool {
	var (
		status *statusError
		failed *url.Error
	)
	return errors.As(err, &failed) || errors.As(err, &status) && status.status == http.StatusServiceUnavailable
}

// until reads up to and including the first event that fits. Next gives more of them.
func (f *follower) until(t *testing.T, fits func(event) bool) event {
	t.Helper()
	for {
		e, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if fits(e) {
			return e
		}
		if e.terminal() {
			t.Fatalf("the run ended before: %s", e.Data)
		}
	}
}

// contents reads until n more pieces of an answer have come.
func (f *follower) contents(t *testing.T, n int) {
	t.Helper()
	for range n {
		f.until(t, func(e event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	}
}

// read reads the run to its terminal event.
func (f *follower) read() error {
	defer f.cut()
	for {
		if e, err := f.next(); err != nil || e.terminal() {
			return err
		}
	}
}

// finish reads the run to its end, and on until the server ends the response.
func (f *follower) finish(t *testing.T) {
	t.Helper()
	f.until(t, event.terminal)
	if _, err := f.stream.next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind %s: %v, want the end of the response", f.events[len(f.events)-1].Type, err)
	}
	f.cut()
}
