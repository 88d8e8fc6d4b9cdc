package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// run is POST runs: it starts a run, or finds it, and shows it.
func (s *session) run(ctx context.Context, r *clientFrame) error {
	agent, err := s.server.authorize(r.Agent)
	if err != nil {
		return err
	}
	input, err := decodeInput(r.Input)
	if err != nil {
		return within("/input", err)
	}
	in, err := s.server.accept(ctx, agent, input)
	if err != nil {
		return within("/input", err)
	}
	defer in.Close()
	ctx = request.WithRun(ctx, in.run, in.agent.Name)
	place := func(ctx context.Context) error {
		if err := s.server.find.AwaitDecision(ctx, in.run.Thread, r.WaitFor); err != nil {
			return within("/waitFor", err)
		}
		return s.server.place(ctx, in)
	}
	if err := s.insist(ctx, place); err != nil {
		return err
	}
	if in.steered != nil {
		s.send(steeredAck(r, in.run.Thread, *in.steered))
		return io.EOF
	}
	err = s.show(ctx, r, in.run, in.view, nil)
	if !errors.Is(context.Cause(ctx), errUnsubscribed) {
		s.server.abandon(ctx, in)
	}
	return err
}

// subscribe is GET events: it shows a run, or a thread.
func (s *session) subscribe(ctx context.Context, r *clientFrame) error {
	run, after, reader, err := s.attach(ctx, r)
	if err != nil {
		return err
	}
	defer reader.Close()
	var frames []view.Frame
	err = s.inSlot(ctx, func() error {
		if err := s.server.find.AwaitEffect(ctx, run.Thread, r.WaitFor); err != nil {
			return within("/waitFor", err)
		}
		switch {
		case r.RunID != nil:
			err = s.server.find.CheckRun(ctx, run, after)
		case !r.follows():
			err = s.server.find.CheckThread(ctx, run.Thread, after)
		}
		if err == nil {
			frames, err = reader.NextPast(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.show(ctx, r, run, reader, frames)
}

// attach makes the view that a frame asks for. Without a runId the run is empty.
func (s *session) attach(ctx context.Context, r *clientFrame) (stream.Run, *stream.Cursor, *view.View, error) {
	run, err := r.run(ctx)
	if r.RunID == nil {
		run.Thread, err = r.thread(ctx)
	}
	if err != nil {
		return run, nil, nil, err
	}
	after, profile, err := s.server.attachment(r.After, r.ProtocolVersion)
	switch {
	case err != nil:
		return run, nil, nil, err
	case r.RunID == nil:
		o := view.ThreadOptions{After: after, Profile: profile, Follow: r.follows()}
		return run, after, s.server.views.Thread(run.Thread, o), nil
	case r.Join && after != nil:
		return run, nil, nil, invalidFrame("/join", "is for clients without a cursor: send either join or after")
	}
	return run, after, s.server.views.Run(run, view.Options{After: after, Join: r.Join, Profile: profile}), nil
}

// cancel is POST cancel.
func (s *session) cancel(ctx context.Context, r *clientFrame) error {
	run, err := r.run(ctx)
	if err != nil {
		return err
	}
	if err := commands.CheckReason(r.Reason); err != nil {
		return err
	}
	return s.insist(ctx, func(ctx context.Context) error { return s.server.commands.Cancel(ctx, run, r.Reason) })
}

// steer is POST messages. It is answered by an ack with the cursor, and ends.
func (s *session) steer(ctx context.Context, r *clientFrame) error {
	thread, err := r.thread(ctx)
	if err != nil {
		return err
	}
	var answer commands.Steered
	err = s.insist(ctx, func(ctx context.Context) (err error) {
		answer, err = s.server.commands.Steer(ctx, thread, r.Message)
		return err
	})
	if err != nil {
		return err
	}
	s.send(steeredAck(r, thread, answer))
	return io.EOF
}

func steeredAck(r *clientFrame, thread stream.Thread, answer commands.Steered) acknowledgement {
	a := ack(r, stream.Run{Thread: thread, ID: answer.RunID})
	a.Cursor = answer.Cursor
	return a
}

// inSlot runs the beginning of a request when it has a slot.
func (s *session) inSlot(ctx context.Context, begin func() error) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.slots }()
	return begin()
}

// insist is inSlot for a change: it is carried out even if the client closes the socket after sending it. It is bounded like a request.
func (s *session) insist(ctx context.Context, change func(context.Context) error) error {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), request.Patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })()
	return s.inSlot(longer, func() error { return change(longer) })
}

// within adds the part of the frame to the pointer of a problem.
func within(part string, err error) error {
	p := *problem.Of(err)
	p.Pointer = part + p.Pointer
	return &p
}

// codeInterrupted is the code of a stream that broke off before its run ended.
const codeInterrupted = "interrupted"

// show acknowledges the request and sends its events. It returns io.EOF at the end of the view.
func (s *session) show(ctx context.Context, r *clientFrame, run stream.Run, view *view.View, frames []view.Frame) error {
	s.send(ack(r, run))
	if current, ok := view.Run(); ok {
		run = current // of a thread, the run in which the client goes on
	}
	envelope, err := newEnvelope(r.ID, run)
	if err != nil {
		return err
	}
	err = s.server.streams.Pump(ctx, view, frames, &subscription{session: s, id: r.ID, run: run, envelope: envelope})
	if errors.Is(err, io.EOF) {
		return err
	}
	return problem.New(http.StatusServiceUnavailable, codeInterrupted, "the stream broke off and may have more: subscribe behind the last cursor")
}

// subscription is the transport of one stream of a socket. It needs no heartbeats: the session sends pings.
type subscription struct {
	session  *session
	id       string
	run      stream.Run // whose events are sent; a thread goes on to others
	envelope envelope
	buf      []byte
}

// maxKept bounds the buffer that a stream keeps: one large event must not occupy memory for hours.
const maxKept = 64 << 10

// Send sends each event as a frame of its own. Streams take turns by the frame.
func (t *subscription) Send(frames []view.Frame) error {
	for _, f := range frames {
		if err := t.turnTo(f); err != nil {
			return err
		}
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

// turnTo notes the next run of the thread.
func (t *subscription) turnTo(f view.Frame) error {
	if f.Type != agui.EventRunStarted {
		return nil
	}
	e, err := agui.Decode(f.Event)
	if err != nil {
		return err
	}
	started, ok := e.(*agui.RunStarted)
	if !ok || started.RunID == t.run.Shown() {
		return nil
	}
	t.run.ID = started.RunID
	t.envelope, err = newEnvelope(t.id, t.run)
	return err
}
