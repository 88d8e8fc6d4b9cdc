package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/trace"
)

// runTrace serves GET /v1/threads/{thread}/runs/{run}/trace: the spans of a run, as JSON or, if the
// Accept header prefers it, as a stream of server-sent events until the run ends.
//
// Important errors: 404 unknown_run, also for a run that has not begun; 410 gone.
func (s *Server) runTrace(c *gin.Context) error {
	ctx := c.Request.Context()
	run, err := access.AddressRun(ctx, request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	mayRead, err := s.access.Reader(ctx, run.Thread)
	if err != nil {
		return err
	}
	if err := problem.InParameter("waitFor", s.finder.AwaitEffect(ctx, run.Thread, c.Query("waitFor"))); err != nil {
		return err
	}
	if c.NegotiateFormat(gin.MIMEJSON, sse.ContentType) == sse.ContentType {
		return s.streamTrace(c, run, mayRead)
	}
	fold, err := s.readTrace(ctx, run, mayRead)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, shownTrace{fold.Trace(), dispatch.WorkflowID(run.Thread)})
}

// readTrace reads the trace of a run that has begun, in a turn of the caller's tenant. The access is
// checked after the log was read.
func (s *Server) readTrace(ctx context.Context, run stream.Run, mayRead func(context.Context) error) (*trace.Fold, error) {
	end, err := s.streams.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	fold, err := trace.Read(ctx, s.Snapshots, run)
	if err == nil && !fold.HasBegun() {
		err = problem.NoRun(run)
	}
	if err == nil {
		err = mayRead(ctx)
	}
	return fold, err
}

// shownTrace is a trace as clients get it. WorkflowID is the ID of the thread's workflow in Temporal.
type shownTrace struct {
	*trace.Trace

	WorkflowID string `json:"workflowId"`
}

// traceEvent is the data of a server-sent event of a trace. Type is trace for the first event, which
// has all spans, spans for later ones, which have the spans that began or changed, and end for the
// last one.
type traceEvent struct {
	Type  string       `json:"type"`
	Trace *shownTrace  `json:"trace,omitempty"`
	Run   *trace.Run   `json:"run,omitempty"`
	Spans []trace.Span `json:"spans,omitempty"`
}

// streamTrace answers with the trace of a run as server-sent events. A client that reconnects gets
// the whole trace again, so the events have no IDs.
func (s *Server) streamTrace(c *gin.Context, run stream.Run, mayRead func(context.Context) error) error {
	ctx := c.Request.Context()
	segment, err := s.finder.LastSegment(ctx, run)
	if err != nil {
		return err
	}
	// The tail is attached before the log is read: a record that is written between the two is not
	// missed.
	tail := s.Follower.Tail(segment)
	defer tail.Close()
	fold, err := s.readTrace(ctx, run, mayRead)
	if err != nil {
		return err
	}
	first, err := json.Marshal(traceEvent{Type: "trace", Trace: &shownTrace{fold.Trace(), dispatch.WorkflowID(run.Thread)}})
	if err != nil {
		return err
	}
	hold := func(bytes int) error { return request.HoldAnswer(c, len(first)+bytes) }
	if err := hold(fold.Size()); err != nil {
		return err
	}
	if s.closed.Err() != nil {
		return streams.ErrDrain
	}
	w, err := sse.NewWriter(c.Writer)
	if err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closed, func() { cancel(streams.ErrDrain) })()
	defer w.KeepAlive(s.Heartbeat, cancel)()
	end := telemetry.Viewer(live)
	err = s.followTrace(live, traceStream{writer: w, tail: tail, fold: fold, run: segment, mayRead: mayRead, hold: hold}, first)
	if live.Err() != nil && !errors.Is(err, io.EOF) {
		err = context.Cause(live)
	}
	end(s.streams.EndReason(live, err))
	return nil
}

// traceStream is the stream of one trace. One goroutine uses it.
type traceStream struct {
	writer  *sse.Writer
	tail    *stream.Tail
	fold    *trace.Fold
	run     stream.Run // the segment that the tail follows
	mayRead func(context.Context) error
	hold    func(bytes int) error // takes memory of the node for the spans; see request.HoldAnswer
}

// followTrace sends the first event, and then the changes until the run ends. The error is io.EOF
// after the end. If the run writes nothing for Silence, its workflow is checked, since a dead
// workflow writes no end.
func (s *Server) followTrace(ctx context.Context, t traceStream, first []byte) error {
	if err := t.send(first); err != nil {
		return err
	}
	for !t.fold.HasEnded() {
		records, err := t.tail.Next(ctx, s.Silence)
		if err == nil && len(records) == 0 {
			err = s.silenceWatcher.Check(ctx, t.run)
		}
		for _, rec := range records {
			if err == nil {
				err = t.fold.Add(ctx, rec)
			}
		}
		if err == nil {
			err = t.sendChanges(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := t.sendEvent(traceEvent{Type: "end"}); err != nil {
		return err
	}
	return io.EOF
}

// sendChanges sends the spans that have changed, if the caller may still read the thread.
func (t traceStream) sendChanges(ctx context.Context) error {
	spans := t.fold.Changed()
	if len(spans) == 0 {
		return nil
	}
	if err := t.mayRead(ctx); err != nil {
		return err
	}
	if err := t.hold(t.fold.Size()); err != nil {
		return err
	}
	run := t.fold.Run()
	return t.sendEvent(traceEvent{Type: "spans", Run: &run, Spans: spans})
}

func (t traceStream) sendEvent(e traceEvent) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return t.send(data)
}

// send sends one event.
func (t traceStream) send(data []byte) error {
	if err := t.writer.Event("", data); err != nil {
		return err
	}
	return t.writer.Flush()
}
