package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/perdure/perdure/stream"
)

// run starts a run, or finds it, and shows it: what POST runs does.
func (s *session) run(ctx context.Context, r *request) error {
	agent, err := s.server.Catalog.Current(r.Agent)
	if err != nil {
		return err
	}
	input, err := decodeInput(r.Input)
	if err != nil {
		return within("/input", err)
	}
	o, err := s.server.offer(agent, input)
	if err != nil {
		return within("/input", err)
	}
	defer o.view.Close()
	if err := s.insist(ctx, func(ctx context.Context) error { return s.server.place(ctx, o) }); err != nil {
		return err
	}
	err = s.show(ctx, r, o.run, o.view, nil)
	if !errors.Is(context.Cause(ctx), errUnsubscribed) {
		s.server.abandon(ctx, o)
	}
	return err
}

// subscribe shows a run again: what GET events does. The whole thread (no runId) and join belong here.
func (s *session) subscribe(ctx context.Context, r *request) error {
	switch {
	case r.RunID == nil:
		return notSupported("/runId", "subscribing to a whole thread is not supported yet: name a run")
	case r.Join:
		return notSupported("/join", "is not supported yet")
	}
	run, err := r.run()
	if err != nil {
		return err
	}
	options, err := s.server.viewFrom(r.After, r.ProtocolVersion)
	if err != nil {
		return err
	}
	view := s.server.Follower.View(run, options)
	defer view.Close()
	var frames []stream.Frame
	err = s.inSlot(ctx, func() error {
		frames, err = s.server.look(ctx, run, view)
		return err
	})
	if err != nil {
		return err
	}
	return s.show(ctx, r, run, view, frames)
}

// cancel cancels a run: what POST cancel does.
func (s *session) cancel(ctx context.Context, r *request) error {
	run, err := r.run()
	if err != nil {
		return err
	}
	if err := checkReason(r.Reason); err != nil {
		return err
	}
	return s.insist(ctx, func(ctx context.Context) error { return s.server.cancel(ctx, run, r.Reason) })
}

// inSlot does what begins a request, when its turn has come.
func (s *session) inSlot(ctx context.Context, begin func() error) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.slots }()
	return begin()
}

// insist is inSlot for what changes something: a page that sends "cancel" as its last words and
// closes the socket means it. It is bounded as a request is.
func (s *session) insist(ctx context.Context, change func(context.Context) error) error {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })()
	return s.inSlot(longer, func() error { return change(longer) })
}

// within turns the pointer of a problem, which starts at a part of the frame, into one of the frame.
func within(part string, err error) error {
	p := *problemOf(err)
	p.Pointer = part + p.Pointer
	return &p
}

// codeInterrupted: a stream broke off before its run was over.
const codeInterrupted = "interrupted"

// show acknowledges the request and sends its events, until the run is over: io.EOF.
func (s *session) show(ctx context.Context, r *request, run stream.Run, view *stream.View, frames []stream.Frame) error {
	envelope, err := newEnvelope(r, run)
	if err != nil {
		return err
	}
	s.send(ack(r, run))
	err = s.server.pump(ctx, run, view, frames, &subscription{session: s, envelope: envelope})
	if errors.Is(err, io.EOF) {
		return err
	}
	return problem(http.StatusServiceUnavailable, codeInterrupted, "the stream broke off and the run goes on: subscribe behind the last cursor")
}

// subscription is the transport of one stream on a socket.
type subscription struct {
	session  *session
	envelope envelope
	buf      []byte
}

// maxKept is how much of a buffer is kept for later: a stream is open for hours, and one large event
// must not weigh on it for as long.
const maxKept = 64 << 10

// Send sends each event as a frame of its own. Streams take turns by the frame.
func (t *subscription) Send(frames []stream.Frame) error {
	for _, f := range frames {
		t.buf = t.envelope.wrap(t.buf[:0], f)
		if err := t.session.conn.Write(t.buf); err != nil {
			t.session.lost(err) // all of its streams end, and none for reasons of its own
			return err
		}
	}
	if cap(t.buf) > maxKept {
		t.buf = nil
	}
	return nil
}

// Heartbeat has nothing to do: the socket has pings.
func (t *subscription) Heartbeat() error { return nil }
