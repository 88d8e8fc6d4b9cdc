package kit

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

// Follower reads one run as a careful client does: with the id of the last event it comes back
// whenever its connection ends before the run does. What it has read when its test ends is
// recorded.
type Follower struct {
	P     *Endpoint // may be another one for the next connection
	In    Input
	Agent string // path
	// View is the path by which it attaches while it has no id; "" = it sends the input.
	View   string
	Events []Event
	Stream *eventStream
	Ctx    context.Context
	// Comebacks counts how often the reader came back with an id.
	Comebacks int
}

// Follow starts a run, or attaches to it, and returns its reader.
func (p *Endpoint) Follow(t *testing.T, in Input) *Follower {
	t.Helper()
	return p.FollowAgent(t, Assistant, in)
}

// FollowAgent is follow for another agent than the usual one.
func (p *Endpoint) FollowAgent(t *testing.T, path string, in Input) *Follower {
	t.Helper()
	f := p.Reader(t, in)
	f.Agent = path
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Reader returns a reader of a run that connects when it is read.
func (p *Endpoint) Reader(t *testing.T, in Input) *Follower {
	p.Threads.Use(in.ThreadID)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	f := &Follower{P: p, In: in, Agent: Assistant, Ctx: ctx}
	t.Cleanup(func() {
		cancel()
		f.Cut()
		if err := recorded.Keep(t.Name(), f); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Quiet returns a reader that ctx bounds and no test owns. What it reads is not recorded for the
// judge.
func (p *Endpoint) Quiet(ctx context.Context, in Input) *Follower {
	p.Threads.Use(in.ThreadID)
	return &Follower{P: p, In: in, Agent: Assistant, Ctx: ctx}
}

// Behind returns a reader that has had the first events of a run.
func (p *Endpoint) Behind(t *testing.T, in Input, had []Event) *Follower {
	t.Helper()
	f := p.Reader(t, in)
	f.Events = slices.Clone(had)
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Run starts a run and reads it to its end.
func (p *Endpoint) Run(t *testing.T, in Input) []Event {
	t.Helper()
	f := p.Follow(t, in)
	f.Finish(t)
	return f.Events
}

// Connect opens a stream: by the last event id, or, while there is none, from the beginning.
func (f *Follower) Connect() error {
	if _, err := f.P.Addresses(f.Ctx); err != nil {
		return err
	}
	var resp *http.Response
	var err error
	last := f.Last()
	if last == "" {
		f.Events = nil // of a join's beginning, which has no ids; it comes again
	}
	switch {
	case f.View != "":
		resp, err = f.P.Get(f.Ctx, f.View, last)
	case last != "":
		resp, err = f.P.Get(f.Ctx, EventsPath(f.In), last)
	default:
		resp, err = f.P.Post(f.Ctx, f.Agent, f.In)
	}
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		return &StatusError{Status: resp.StatusCode, Body: string(body)}
	}
	f.Stream, err = ReadEvents(resp)
	return err
}

// Last returns the id of the last event.
func (f *Follower) Last() string {
	if len(f.Events) == 0 {
		return ""
	}
	return f.Events[len(f.Events)-1].ID
}

// Cut drops the connection.
func (f *Follower) Cut() {
	if f.Stream != nil {
		_ = f.Stream.Close()
		f.Stream = nil
	}
}

// Next reads one event, over as many connections as that takes.
func (f *Follower) Next() (Event, error) {
	for {
		err := f.Ctx.Err()
		if f.Stream != nil {
			var e Event
			if e, err = f.Stream.Next(); err == nil {
				f.Events = append(f.Events, e)
				return e, nil
			}
			f.Cut()
		}
		if f.Ctx.Err() != nil {
			return Event{}, fmt.Errorf("run %s of %s, %d events read: %w", f.In.RunID, f.In.ThreadID, len(f.Events), errors.Join(f.Ctx.Err(), err))
		}
		if len(f.Events) > 0 {
			f.Comebacks++
		}
		if err := f.Connect(); err != nil && !passing(err) {
			return Event{}, err
		}
	}
}

// StatusError is an answer that is no stream.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Body) }

// passing reports whether the same request may succeed soon: nobody listens just now, whoever did
// is gone, or it is unknown whether the request took effect.
func passing(err error) bool {
	var (
		status *StatusError
		failed *url.Error
	)
	return errors.As(err, &failed) || errors.As(err, &status) && status.Status == http.StatusServiceUnavailable
}

// Until reads up to and including the first event that fits. Next gives more of them.
func (f *Follower) Until(t *testing.T, fits func(Event) bool) Event {
	t.Helper()
	for {
		e, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if fits(e) {
			return e
		}
		if e.Terminal() {
			t.Fatalf("the run ended before: %s", e.Data)
		}
	}
}

// Contents reads until n more pieces of an answer have come.
func (f *Follower) Contents(t *testing.T, n int) {
	t.Helper()
	for range n {
		f.Until(t, func(e Event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	}
}

// Read reads the run to its terminal event.
func (f *Follower) Read() error {
	defer f.Cut()
	for {
		if e, err := f.Next(); err != nil || e.Terminal() {
			return err
		}
	}
}

// Finish reads the run to its end, and on until the server ends the response.
func (f *Follower) Finish(t *testing.T) {
	t.Helper()
	f.Until(t, Event.Terminal)
	if _, err := f.Stream.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind %s: %v, want the end of the response", f.Events[len(f.Events)-1].Type, err)
	}
	f.Cut()
}

// Drain reads to the end of the connection.
func (f *Follower) Drain() error {
	for {
		e, err := f.Stream.Next()
		if err != nil {
			f.Cut()
			return err
		}
		f.Events = append(f.Events, e)
	}
}
