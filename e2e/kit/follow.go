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

// Follower reads one run and reconnects with the last event id whenever its connection ends before
// the run does. The events that it has read when the test ends are recorded for the reference
// clients.
type Follower struct {
	Endpoint *Endpoint // tests may change it between two connections
	In       Input
	Agent    string // path that starts the run
	// AttachPath is the path that it reads while it has no event id; "" = it sends the input.
	AttachPath string
	Events     []Event
	Stream     *EventStream
	Ctx        context.Context
	// Reconnects is the number of reconnects with an event id.
	Reconnects int
}

// Follow starts a run of the assistant, or attaches to it, and returns its follower.
func (p *Endpoint) Follow(t *testing.T, in Input) *Follower {
	t.Helper()
	return p.FollowAgent(t, AssistantPath, in)
}

// FollowAgent is like Follow, for the agent of a path.
func (p *Endpoint) FollowAgent(t *testing.T, path string, in Input) *Follower {
	t.Helper()
	f := p.NewFollower(t, in)
	f.Agent = path
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// NewFollower returns a follower that connects at its first read.
func (p *Endpoint) NewFollower(t *testing.T, in Input) *Follower {
	p.Threads.Add(in.ThreadID)
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	f := &Follower{Endpoint: p, In: in, Agent: AssistantPath, Ctx: ctx}
	t.Cleanup(func() {
		cancel()
		f.Cut()
		if err := recorded.Add(t.Name(), f); err != nil {
			t.Error(err)
		}
	})
	return f
}

// NewUnrecordedFollower returns a follower that ctx bounds. Its events are not recorded for the
// reference clients.
func (p *Endpoint) NewUnrecordedFollower(ctx context.Context, in Input) *Follower {
	p.Threads.Add(in.ThreadID)
	return &Follower{Endpoint: p, In: in, Agent: AssistantPath, Ctx: ctx}
}

// FollowAfter returns a follower that has already read the first events of a run.
func (p *Endpoint) FollowAfter(t *testing.T, in Input, had []Event) *Follower {
	t.Helper()
	f := p.NewFollower(t, in)
	f.Events = slices.Clone(had)
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Run runs the assistant to the end of the run and returns the events.
func (p *Endpoint) Run(t *testing.T, in Input) []Event {
	t.Helper()
	f := p.Follow(t, in)
	f.Finish(t)
	return f.Events
}

// Connect opens a stream: after the last event id or, if there is none, from the beginning.
func (f *Follower) Connect() error {
	if _, err := f.Endpoint.Addresses(f.Ctx); err != nil {
		return err
	}
	var resp *http.Response
	var err error
	last := f.Last()
	if last == "" {
		f.Events = nil // the events of a join have no ids; the server sends them again
	}
	switch {
	case f.AttachPath != "":
		resp, err = f.Endpoint.Get(f.Ctx, f.AttachPath, last)
	case last != "":
		resp, err = f.Endpoint.Get(f.Ctx, EventsPath(f.In), last)
	default:
		resp, err = f.Endpoint.Post(f.Ctx, f.Agent, f.In)
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

// Last returns the id of the last event; "" = none.
func (f *Follower) Last() string {
	if len(f.Events) == 0 {
		return ""
	}
	return f.Events[len(f.Events)-1].ID
}

// Cut closes the connection.
func (f *Follower) Cut() {
	if f.Stream != nil {
		_ = f.Stream.Close()
		f.Stream = nil
	}
}

// Next reads one event, with as many connections as that takes.
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
			f.Reconnects++
		}
		if err := f.Connect(); err != nil && !isTransient(err) {
			return Event{}, err
		}
	}
}

// StatusError is a response that is not a stream of events.
type StatusError struct {
	Status int
	Body   string
}

// Error returns the status and the beginning of the body.
func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Body) }

// isTransient reports whether the same request may succeed soon: no API serves, or the connection
// broke and the effect of the request is unknown.
func isTransient(err error) bool {
	var (
		status *StatusError
		failed *url.Error
	)
	return errors.As(err, &failed) || errors.As(err, &status) && status.Status == http.StatusServiceUnavailable
}

// Until reads up to and including the first event for which fits is true.
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
			t.Fatalf("event = %s, want one before the end of the run", e.Data)
		}
	}
}

// UntilContent reads n more events with text.
func (f *Follower) UntilContent(t *testing.T, n int) {
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

// Finish reads the run to its terminal event and then to the end of the response.
func (f *Follower) Finish(t *testing.T) {
	t.Helper()
	f.Until(t, Event.Terminal)
	if _, err := f.Stream.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after %s: %v, want the end of the response", f.Events[len(f.Events)-1].Type, err)
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
