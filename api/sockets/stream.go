package sockets

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// run serves a run frame, the counterpart of POST /v1/agents/{agent}/runs: it places the run and
// sends its events. If the input becomes steering, it sends the acknowledgement and ends. It
// returns io.EOF at the end of the stream.
func (s *session) run(ctx context.Context, r *clientFrame) error {
	in, err := s.Runs.Accept(ctx, r.Agent, r.Revision, r.Input)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx = request.WithRun(ctx, in.Run(), in.Agent())
	place := func(ctx context.Context) error {
		if err := s.Finder.AwaitDecision(ctx, in.Run().Thread, r.WaitFor); err != nil {
			return problem.Within("/waitFor", err)
		}
		return in.StartOrAttach(ctx)
	}
	if err := s.changeInSlot(ctx, place); err != nil {
		return err
	}
	r.release() // the stream may last for hours
	if err := auditing.Accept(ctx); err != nil {
		return err
	}
	if steered := in.Steered(); steered != nil {
		s.send(steeredAck(r, in.Run().Thread, *steered))
		return io.EOF
	}
	err = s.sendStream(ctx, r, in.Run(), in.View(), nil)
	// An unsubscribe ends the stream, but is no disconnect.
	if !errors.Is(context.Cause(ctx), errUnsubscribed) {
		in.CancelIfDisconnected(ctx)
	}
	return err
}

// subscribe serves a subscribe frame, the counterpart of GET events: it sends the events of a run
// or, without runId, of a thread. It reads the first frames before it acknowledges, so that an
// invalid cursor is a refusal. It returns io.EOF at the end of the view; if nothing follows the
// cursor, without an ack.
func (s *session) subscribe(ctx context.Context, r *clientFrame) error {
	run, o, mayRead, err := s.attachment(ctx, r)
	if err != nil {
		return err
	}
	var reader *view.View
	var first *streams.Batch
	err = s.inSlot(ctx, func() error {
		if err := s.Finder.AwaitEffect(ctx, run.Thread, r.WaitFor); err != nil {
			return problem.Within("/waitFor", err)
		}
		if run, reader, err = s.attach(ctx, r, run, o); err == nil {
			reader.Admit(mayRead)
			if access.IsUnknown(mayRead(ctx)) {
				if err := streams.AwaitThread(ctx); err != nil {
					return err
				}
			}
			first, err = s.Streams.First(ctx, reader)
		}
		return err
	})
	if reader != nil {
		defer reader.Close()
	}
	defer first.Release()
	if err != nil {
		return err
	}
	return s.sendStream(ctx, r, run, reader, first)
}

// attachment returns the run that a subscribe frame names, the options of its view, and the check of
// its reader. Without a runId the run has a thread only.
func (s *session) attachment(ctx context.Context, r *clientFrame) (run stream.Run, o view.Options, mayRead func(context.Context) error, err error) {
	if r.RunID == nil {
		run.Thread, err = access.Address(ctx, r.ThreadID)
	} else {
		run, err = r.run(ctx)
	}
	if err == nil {
		mayRead, err = s.Access.Reader(ctx, run.Thread)
	}
	if err == nil {
		o.After, o.Generation, err = s.Finder.CursorAndGeneration(r.After, r.ProtocolVersion)
	}
	if err == nil && r.RunID != nil && r.Join && o.After != nil {
		err = invalidFrame("/join", "must not be combined with after")
	}
	o.Join, o.Timestamps = r.Join, r.Timestamps
	return run, o, mayRead, err
}

// attach creates the view that a subscribe frame requests, and returns its run, which is the
// segment that the reader is shown, and the view. The caller closes the view, which is nil only
// with an error. A run that the log does not have is a 404, and so is a thread that does not exist
// if its stream would end at once.
func (s *session) attach(ctx context.Context, r *clientFrame, run stream.Run, o view.Options) (stream.Run, *view.View, error) {
	if r.RunID == nil {
		// The view is attached before the check: a record that is written between the two is not
		// missed.
		reader := s.Views.Thread(run.Thread, view.ThreadOptions{After: o.After, Generation: o.Generation, IncludeLater: r.followsLaterRuns(), Timestamps: o.Timestamps})
		if r.followsLaterRuns() {
			return run, reader, nil
		}
		return run, reader, s.Finder.CheckThread(ctx, run.Thread, o.After)
	}
	if err := s.Finder.CheckRun(ctx, run, o.After); err != nil {
		return run, nil, err
	}
	run, o, err := s.Runs.Segment(ctx, run, o)
	if err != nil {
		return run, nil, err
	}
	return run, s.Views.Run(run, o), nil
}

// cancel serves a cancel frame, the counterpart of POST …/cancel.
func (s *session) cancel(ctx context.Context, r *clientFrame) error {
	run, err := r.run(ctx)
	if err != nil {
		return err
	}
	if err := commands.CheckReason(r.Reason); err != nil {
		return err
	}
	return s.changeInSlot(ctx, func(ctx context.Context) error {
		if err := s.Access.Check(ctx, run.Thread, policy.RunThread); err != nil {
			return err
		}
		return s.Commands.Cancel(ctx, run, r.Reason)
	})
}

// steer serves a steer frame, the counterpart of POST …/messages. It sends an ack with the cursor
// and the run, and returns io.EOF for the end frame.
func (s *session) steer(ctx context.Context, r *clientFrame) error {
	thread, err := access.Address(ctx, r.ThreadID)
	if err != nil {
		return err
	}
	var steered commands.Steered
	err = s.changeInSlot(ctx, func(ctx context.Context) (err error) {
		if err := s.Access.Check(ctx, thread, policy.RunThread); err != nil {
			return err
		}
		steered, err = s.Commands.Steer(ctx, thread, r.Message)
		return err
	})
	if err != nil {
		return err
	}
	s.send(steeredAck(r, thread, steered))
	return io.EOF
}

// steeredAck returns the acknowledgement of a message to an active run. It may answer a steer or a
// run frame.
func steeredAck(r *clientFrame, thread stream.Thread, steered commands.Steered) acknowledgement {
	a := acknowledge(r, stream.Run{Thread: thread, ID: steered.RunID})
	a.Cursor = steered.Cursor
	return a
}

// inSlot calls begin when a slot is free, and returns its error. It returns the cause of ctx if
// that ends first.
func (s *session) inSlot(ctx context.Context, begin func() error) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.slots }()
	return begin()
}

// changeInSlot is inSlot for a request that changes something. The change continues for closeGrace
// after the client has closed the WebSocket, and in any case takes at most request.ResponseTimeout.
func (s *session) changeInSlot(ctx context.Context, change func(context.Context) error) error {
	// The context of the request ends with the WebSocket. changeCtx outlives it by closeGrace, so
	// that work which the client has sent is not lost in a page that closes.
	changeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), request.ResponseTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, cancel) })()
	return s.inSlot(changeCtx, func() error { return change(changeCtx) })
}

// codeInterrupted is the code of the error frame for a stream that was cut before its end.
const codeInterrupted = "interrupted"

// sendStream acknowledges a request and sends the events of its view. first was read from the view
// already; nil = nothing was. It returns io.EOF at the end of the view, and otherwise a 503
// interrupted, after which the client subscribes again with its last cursor.
func (s *session) sendStream(ctx context.Context, r *clientFrame, run stream.Run, view *view.View, first *streams.Batch) error {
	// The ack precedes all events. The client may wait for it before it shows the run as started.
	s.send(acknowledge(r, run))
	if current, ok := view.Run(); ok {
		run = current // a stream of a thread may begin in the active run
	}
	envelope, err := newEnvelope(r.ID, run)
	if err != nil {
		return err
	}
	err = s.Streams.Pump(ctx, view, first, &subscription{session: s, id: r.ID, run: run, envelope: envelope})
	if errors.Is(err, io.EOF) || policy.IsDenied(err) {
		return err
	}
	return problem.New(http.StatusServiceUnavailable, codeInterrupted, "the stream was interrupted: subscribe again after the last cursor")
}

// subscription is the streams.Transport of one stream of a session. It needs no heartbeats, because
// the session sends them. The goroutine of the request owns it.
type subscription struct {
	session  *session
	id       string
	run      stream.Run // the run whose events are sent; a thread's stream moves on to later runs
	envelope envelope
	buf      []byte // reused for each frame
}

// maxBuffer bounds the buffer that a stream keeps, in bytes: after one large event it must not
// occupy memory for hours.
const maxBuffer = 64 << 10

// Send implements streams.Transport. Each event is a message of its own, so that concurrent streams
// of the WebSocket take turns event by event.
func (t *subscription) Send(frames []view.Frame) error {
	for _, f := range frames {
		if err := t.changeRun(f); err != nil {
			return err
		}
		t.buf = t.envelope.appendFrame(t.buf[:0], f)
		if err := t.session.out.Write(t.buf); err != nil {
			t.session.endAll(err) // the connection is broken: all streams end with the same cause
			return err
		}
	}
	if cap(t.buf) > maxBuffer {
		t.buf = nil
	}
	return nil
}

// changeRun changes to the envelope of the thread's next run, if the frame is that run's
// RUN_STARTED.
func (t *subscription) changeRun(f view.Frame) error {
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
