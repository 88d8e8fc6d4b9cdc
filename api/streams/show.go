package streams

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui/protobuf"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// Show answers an HTTP request with the frames of a view, until the view ends or the client is
// gone. first are the frames that First has returned; nil = none. It chooses the transport by the
// Accept header. While the node drains it answers 503. The caller closes the view, and has counted
// the stream with Enter or as a GET request.
func (s *Streams) Show(c *gin.Context, view *view.View, first *Batch) {
	defer first.Release()
	if s.Closed.Err() != nil { // an empty stream would look like a run that has ended
		s.Problems.Refuse(c, ErrDrain)
		return
	}
	transport, err := s.newTransport(c, view.Generation())
	if err != nil {
		return // the client is gone
	}
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	// A failed heartbeat ends ctx: otherwise a dead client would keep its view until the run's next
	// event.
	if transport, ok := transport.(sseTransport); ok {
		defer transport.w.KeepAlive(s.Heartbeat, cancel)()
	}
	_ = s.Pump(ctx, view, first, transport) // the client knows how it ended
}

// Turn waits until the caller's tenant has a turn to read the past of a thread or a run, up to
// request.ResponseTimeout; then the error is a 503 node_full. After nil, the caller calls end.
func (s *Streams) Turn(ctx context.Context) (end func(), err error) {
	caller, _ := auth.From(ctx)
	waiting, cancel := context.WithTimeout(ctx, request.ResponseTimeout)
	defer cancel()
	end, err = s.turns.take(waiting, caller.Tenant)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, problem.Full("streams and traces of the tenant that begin at once")
	}
	return end, nil
}

// First returns the first frames of a stream, as View.NextPast does, in a turn of the caller's
// tenant (see Turn). The error is also a 429 quota_exceeded or a 503 node_full if there is no memory
// for large frames. The caller releases the batch.
func (s *Streams) First(ctx context.Context, view *view.View) (*Batch, error) {
	end, err := s.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	frames, err := view.NextPast(ctx)
	if err != nil {
		return nil, err
	}
	first := s.newBatch(ctx)
	return first, first.put(frames)
}

// newTransport sends the header of the response and returns its transport. Clients before AG-UI 1.0
// get SSE even if they name the binary format: they cannot read their own format once it has a tool
// result. An error means that the client is gone.
func (s *Streams) newTransport(c *gin.Context, generation stream.Generation) (Transport, error) {
	if generation == stream.Generation1 && WantsBinary(c.Request) {
		w, err := live.NewWriter(c.Writer, protobuf.MediaType)
		return binaryTransport{w}, err
	}
	w, err := sse.NewWriter(c.Writer)
	return sseTransport{w}, err
}

// sseTransport is the transport of an SSE response. KeepAlive writes heartbeats from another
// goroutine; sse.Writer orders the two.
type sseTransport struct{ w *sse.Writer }

// Send implements Transport. The ID of each event is its cursor; without one the browser keeps the
// ID before.
func (e sseTransport) Send(frames []view.Frame) error {
	for _, f := range frames {
		if err := e.w.Event(f.Cursor.String(), f.Event); err != nil {
			return err
		}
		if e.w.Full() {
			if err := e.w.Flush(); err != nil {
				return err
			}
		}
	}
	return e.w.Flush()
}

// Pump sends the frames of a view to a transport until the view ends, and blocks meanwhile. It
// sends those of first before, and releases them; nil = none. If the run writes nothing for Silence,
// Pump has the watcher check the run's workflow, since a dead workflow writes no end.
//
// It returns io.EOF when the view has ended. After another error the stream ends, perhaps without a
// terminal event, and the client continues with its last cursor. The cause is ErrDrain, ErrExpired,
// live.ErrSlow, the problem of a caller or a node without memory for large events, or that of ctx.
// Pump counts the stream in the metrics, with the reason of its end.
func (s *Streams) Pump(ctx context.Context, shown *view.View, first *Batch, transport Transport) error {
	unread := cmp.Or(first, s.newBatch(ctx))
	defer unread.Release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Closed, func() { cancel(ErrDrain) })()
	if s.Strict {
		transport = newStrict(transport, shown.Resumed())
	}
	end := telemetry.Viewer(ctx)
	var err error
	for err == nil {
		if len(unread.frames) > 0 {
			if err = begin(ctx); err == nil {
				err = transport.Send(unread.frames)
			}
			if err != nil {
				break
			}
			unread.Release()
		}
		var frames []view.Frame
		// No frames without an error: the run was silent for Silence.
		if frames, err = shown.Next(ctx, s.Silence); err == nil && frames == nil {
			if run, ok := shown.Run(); ok {
				err = s.Watcher.Check(ctx, run)
			}
		}
		if err == nil {
			err = unread.put(frames)
		}
	}
	// An operation that the end of ctx has interrupted reports only that. The cause tells why.
	if ctx.Err() != nil && !errors.Is(err, io.EOF) && !errors.Is(err, live.ErrSlow) {
		err = context.Cause(ctx)
	}
	end(s.EndReason(ctx, err))
	return err
}

// EndReason returns the reason of a stream's end as a label of metrics, from the error of Pump or
// of a similar loop. It logs the ends that are defects or unexpected; a client that leaves is
// neither.
func (s *Streams) EndReason(ctx context.Context, err error) string {
	var v *violation
	switch {
	case errors.Is(err, io.EOF):
		return "finished"
	case errors.As(err, &v):
		s.Logger.ErrorContext(ctx, "stream ended because its next event violates AG-UI", "error", err)
		return "forbidden"
	case errors.Is(err, live.ErrSlow):
		return "slow"
	case isFull(err):
		return "full"
	case errors.Is(err, ErrDrain):
		return "drained"
	case errors.Is(err, ErrExpired):
		return "expired"
	case ctx.Err() != nil:
		return "left"
	case errors.Is(err, stream.ErrInterrupted):
		return "interrupted"
	case errors.Is(err, stream.ErrGone):
		return "gone"
	case policy.IsDenied(err):
		return "denied"
	}
	s.Logger.WarnContext(ctx, "stream ended before its run ended", "error", err)
	return "failed"
}

// isFull reports whether the node has no place for the stream of a thread that has begun, or no
// memory for its events.
func isFull(err error) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && (p.Code == problem.CodeFull || p.Quota != "")
}
