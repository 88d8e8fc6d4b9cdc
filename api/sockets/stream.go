package sockets

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
	in, err := s.Runs.Accept(ctx, r.Agent, r.Input)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx = request.WithRun(ctx, in.Run(), in.Agent())
	place := func(ctx context.Context) error {
		if err := s.Find.AwaitDecision(ctx, in.Run().Thread, r.WaitFor); err != nil {
			return problem.Within("/waitFor", err)
		}
		return in.Place(ctx)
	}
	if err := s.changeInSlot(ctx, place); err != nil {
		return err
	}
	if steered := in.Steered(); steered != nil {
		s.send(steeredAck(r, in.Run().Thread, *steered))
		return io.EOF
	}
	err = s.show(ctx, r, in.Run(), in.View(), nil)
	if !errors.Is(context.Cause(ctx), errUnsubscribed) {
		in.Abandon(ctx)
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
		if err := s.Find.AwaitEffect(ctx, run.Thread, r.WaitFor); err != nil {
			return problem.Within("/waitFor", err)
		}
		switch {
		case r.RunID != nil:
			err = s.Find.CheckRun(ctx, run, after)
		case !r.follows():
			err = s.Find.CheckThread(ctx, run.Thread, after)
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
	after, profile, err := s.Find.Position(r.After, r.ProtocolVersion)
	switch {
	case err != nil:
		return run, nil, nil, err
	case r.RunID == nil:
		o := view.ThreadOptions{After: after, Profile: profile, Follow: r.follows()}
		return run, after, s.Views.Thread(run.Thread, o), nil
	case r.Join && after != nil:
		return run, nil, nil, invalidFrame("/join", "is for clients without a cursor: send either join or after")
	}
	return run, after, s.Views.Run(run, view.Options{After: after, Join: r.Join, Profile: profile}), nil
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
	return s.changeInSlot(ctx, func(ctx context.Context) error { return s.Commands.Cancel(ctx, run, r.Reason) })
}

// steer is POST messages. It is answered by an ack with the cursor, and ends.
func (s *session) steer(ctx context.Context, r *clientFrame) error {
	thread, err := r.thread(ctx)
	if err != nil {
		return err
	}
	var answer commands.Steered
	err = s.changeInSlot(ctx, func(ctx context.Context) (err error) {
		answer, err = s.Commands.Steer(ctx, thread, r.Message)
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

// changeInSlot is inSlot for a change: it is carried out even if the client closes the socket after
// sending it. It is bounded like a request.
func (s *session) changeInSlot(ctx context.Context, change func(context.Context) error) error {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), request.Patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })()
	return s.inSlot(longer, func() error { return change(longer) })
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
	err = s.Streams.Pump(ctx, view, frames, &subscription{session: s, id: r.ID, run: run, envelope: envelope})
	if errors.Is(err, io.EOF) {
		return err
	}
	return problem.New(http.StatusServiceUnavailable, codeInterrupted, "the stream broke off and may have more: subscribe behind the last cursor")
}

// subscription is the transport of one stream of a socket. It needs no heartbeats: the session
// sends pings.
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
