package sockets

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/stream"
)

// streamsBody is the body of POST /v1/streams.
type streamsBody struct {
	Streams []streamRequest `json:"streams"`
}

// streamRequest is one stream of a POST /v1/streams, with the members of a subscribe frame.
type streamRequest struct {
	ID       string  `json:"id"`
	ThreadID string  `json:"threadId"`
	RunID    *string `json:"runId"`
	subscribeMembers
	WaitFor string `json:"waitFor"`
}

// frame returns the subscribe frame of the request.
func (r streamRequest) frame() *clientFrame {
	return &clientFrame{
		Type: "subscribe", ID: r.ID, ThreadID: r.ThreadID, RunID: r.RunID, subscribeMembers: r.subscribeMembers, WaitFor: r.WaitFor,
	}
}

// check returns a 400 for a list that is empty or too long, or whose IDs are missing, too long or
// not distinct. Other mistakes of a stream are an error frame, so that the other streams begin.
func (b streamsBody) check(maxStreams int) error {
	if n := len(b.Streams); n == 0 || n > maxStreams {
		return problem.BadRequest("invalid_input", "/streams", fmt.Sprintf("must have 1 to %d streams", maxStreams))
	}
	known := map[string]bool{}
	for i, r := range b.Streams {
		pointer := fmt.Sprintf("/streams/%d/id", i)
		switch {
		case r.ID == "" || len(r.ID) > stream.MaxIDBytes:
			return problem.BadRequest("invalid_input", pointer, fmt.Sprintf("must have 1 to %d bytes", stream.MaxIDBytes))
		case known[r.ID]:
			return problem.BadRequest("invalid_input", pointer, "must differ from the IDs of the other streams")
		}
		known[r.ID] = true
	}
	return nil
}

// ServeStreams serves POST /v1/streams: the events of several runs and threads as one response of
// server-sent events, for clients whose WebSockets a proxy refuses. The data of each event is a
// frame of a WebSocket. It blocks until all streams have ended, the client is gone, or the node
// drains.
//
// Errors before the response: 400 invalid_input, 503 while the node drains. An error of one stream
// is an error frame.
func (s *Sockets) ServeStreams(c *gin.Context, body []byte) error {
	var b streamsBody
	if err := request.DecodeObject(body, &b); err != nil {
		return err
	}
	if err := b.check(s.MaxRequestsPerSocket); err != nil {
		return err
	}
	if s.Closed.Err() != nil {
		return streams.ErrDrain
	}
	request.ReleaseBody(c) // the response may last for hours
	w, err := sse.NewWriter(c.Writer)
	if err != nil {
		return nil //nolint:nilerr // because the client is gone
	}
	session := newSession(s, "POST /v1/streams", &eventFrames{w: w})
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	session.endAll = cancel
	defer cancel(nil)
	defer w.KeepAlive(s.Heartbeat, cancel)()
	for _, r := range b.Streams {
		// The IDs are distinct, and not too many: start does not refuse them.
		if err := session.start(ctx, r.frame(), session.countingStream(session.subscribe)); err != nil {
			return errors.Join(err, errSocketEnded)
		}
	}
	session.work.Wait()
	return nil
}

// eventFrames sends frames as server-sent events without an ID: the cursor is a member of the
// frame, because each stream has its own.
type eventFrames struct {
	mu sync.Mutex // one goroutine may call w
	w  *sse.Writer
}

// Write implements frameWriter.
func (e *eventFrames) Write(frame []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.w.Event("", frame); err != nil {
		return err
	}
	return e.w.Flush()
}
