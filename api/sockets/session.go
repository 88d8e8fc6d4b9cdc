package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/socket"
	"github.com/perdure/perdure/stream"
)

// session serves the requests of one client over one connection, a WebSocket or the response to a
// POST /v1/streams. On a WebSocket, one goroutine reads frames. Each request that takes time has a
// goroutine of its own, and does not block the others:
//
//	read ──ping, unsubscribe, refusals──► answered at once
//	  └───run, subscribe, cancel──► open, one goroutine each ──slot──► begun ──► pump ──► the socket
//
// There is no queue of frames to send: a stream holds the part of the log that it sends, and reads
// the next part when the client has taken it. So a connection costs no more memory than its
// streams, however slow its client is. out orders the frames of concurrent writers.
//
// serve and ServeStreams own the session and end it. The goroutines end with their context, which
// endAll cancels.
type session struct {
	*Sockets

	route  string // the route of the connection, for spans
	out    frameWriter
	conn   *socket.Conn            // nil = the session has no WebSocket
	slots  chan struct{}           // held while a request begins; see slotsPerSocket
	work   sync.WaitGroup          // all goroutines of the session but the reader
	endAll context.CancelCauseFunc // ends all requests of the session, with the cause

	mu   sync.Mutex
	open map[string]*openRequest // the open requests by the IDs of their frames
}

// frameWriter sends frames to a client. Write blocks while the client is slow, and may be called
// concurrently. After an error the connection is of no use.
type frameWriter interface{ Write(frame []byte) error }

// openRequest is an open request. session.mu guards it.
type openRequest struct {
	stop         context.CancelCauseFunc // ends the request's context
	unsubscribed bool                    // an unsubscribe waits for the end of the request
}

const (
	// slotsPerSocket bounds how many requests of a WebSocket begin concurrently, that is, until a
	// run is placed, the past of a stream is read, or a change is durable. A client could otherwise
	// send 64 expensive requests at once. Open streams hold no slot.
	slotsPerSocket = 8
	// maxFaults bounds the invalid frames in a row. A client that sends nothing else is defective
	// or hostile.
	maxFaults = 100
	// closeGrace is how long a request may continue that the client sent before it closed the
	// WebSocket: a cancel that is sent just before a page closes shall take effect.
	closeGrace = 2 * time.Second
)

var (
	// errSocketEnded: the WebSocket has ended. errUnsubscribed: the client has ended this stream,
	// which does not count as a disconnect. errFaults: the client has sent maxFaults invalid
	// frames.
	errSocketEnded  = errors.New("api: the socket has ended")
	errUnsubscribed = errors.New("api: the client has unsubscribed")
	errFaults       = errors.New("api: too many invalid frames")
)

// newSession returns a session of a route that sends its frames to out. For a WebSocket, the caller
// sets conn and calls serve.
func newSession(sockets *Sockets, route string, out frameWriter) *session {
	return &session{Sockets: sockets, route: route, out: out, slots: make(chan struct{}, slotsPerSocket), open: map[string]*openRequest{}}
}

// serve serves the WebSocket until it ends, and returns its close code, for metrics. It returns
// after all goroutines of the session.
func (s *session) serve(ctx context.Context) int {
	ctx, s.endAll = context.WithCancelCause(ctx)
	s.work.Go(func() { s.keepAlive(ctx) })
	err := s.read(ctx)
	if errors.Is(err, errFaults) {
		s.conn.Close(socket.Policy, "too many invalid frames")
	} else {
		s.conn.Close(socket.CodeOf(err), "")
	}
	// Requests end with the WebSocket, except for changes, which continue for closeGrace.
	s.endAll(errSocketEnded)
	s.work.Wait()
	return s.conn.Wait()
}

// keepAlive sends pings, and closes the WebSocket when the server drains (1001) or the credentials
// expire or are revoked (3000). It runs in a goroutine of its own until ctx ends.
func (s *session) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(s.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.conn.Ping()
		case <-s.Closed.Done():
			s.conn.Close(socket.GoingAway, "the server is shutting down")
			return
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), streams.ErrExpired) {
				s.conn.Close(socket.Unauthorized, "the credentials have expired or were revoked")
			}
			return
		}
	}
}

// read reads and handles frames until the WebSocket ends, and returns the reason. It does not block
// on the work of a request. Refusals are answered, and only errFaults ends the loop by itself.
func (s *session) read(ctx context.Context) error {
	faults := 0
	for {
		held := s.Bodies.Portion(request.Caller(ctx))
		frame, err := s.conn.Read(held.Grow)
		if err != nil {
			held.Release()
			return err
		}
		r, err := decodeFrame(frame)
		if refused := s.Rates.Take(request.Caller(ctx), r.writes()); refused != nil {
			err = refused
		}
		if r.held = held; err == nil {
			err = s.handle(ctx, r)
		}
		if err != nil {
			held.Release()
		}
		if err == nil {
			faults = 0
			continue
		}
		p := problem.Of(err)
		s.send(refusalOf(r, p))
		// Refusals of valid frames, such as a busy thread, are no faults.
		if p.Code != "invalid_frame" {
			faults = 0
		} else if faults++; faults == maxFaults {
			return errFaults
		}
	}
}

// handle answers a request, or starts a goroutine that does, which releases the memory of the
// message. An error is a refusal that read sends.
func (s *session) handle(ctx context.Context, r *clientFrame) error {
	if errors.Is(context.Cause(ctx), streams.ErrExpired) { // the WebSocket is about to close
		return streams.ErrExpired
	}
	switch r.Type {
	case "ping":
		r.release()
		s.send(acknowledge(r, stream.Run{}))
	case "unsubscribe":
		r.release()
		if !s.unsubscribe(r) {
			s.send(acknowledge(r, stream.Run{})) // the request has ended already
		}
	case "run":
		return s.start(ctx, r, s.countingStream(s.run))
	case "subscribe":
		return s.start(ctx, r, s.countingStream(s.subscribe))
	case "cancel":
		return s.start(ctx, r, s.cancel)
	case "steer":
		return s.start(ctx, r, s.steer)
	case "decide":
		return s.start(ctx, r, s.decide)
	case "tool_result":
		return s.start(ctx, r, s.toolResult)
	default:
		return invalidFrame("/type", "is not a frame type")
	}
	return nil
}

// start serves a request in a goroutine. serve returns nil for an ack, io.EOF if it has sent its
// last answer but the end frame, and any other error for a refusal. The error of start is that the
// ID is in use, or that too many requests are open.
func (s *session) start(ctx context.Context, r *clientFrame, serve func(context.Context, *clientFrame) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	if err := s.register(r.ID, stop); err != nil {
		stop(err)
		return err
	}
	s.work.Go(func() {
		defer stop(nil)
		ctx, end := telemetry.Frame(ctx, s.route, r.Type)
		// The span names the run if the frame has one. An error here is reported by serve.
		if run, err := r.run(ctx); err == nil {
			ctx = request.WithRun(ctx, run, "")
		}
		ctx = s.Recorder.Begin(ctx, r.auditAction())
		auditing.About(ctx, func(t *audit.Target) {
			t.Thread, t.Agent, t.Approval = audit.Cut(r.ThreadID), audit.Cut(r.Agent), audit.Cut(r.ApprovalID)
		})
		end(s.conclude(ctx, r, s.settle(ctx, s.serveRecovering(ctx, r, serve))))
	})
	return nil
}

// settle records the outcome of a request in the audit log, and returns the error for the client. A
// stream that has begun is recorded already.
func (s *session) settle(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return auditing.Settle(ctx, err)
}

// countingStream wraps serve for a request with a stream: it counts the stream of the node, and
// refuses the request on a full node.
func (s *session) countingStream(serve func(context.Context, *clientFrame) error) func(context.Context, *clientFrame) error {
	return func(ctx context.Context, r *clientFrame) error {
		ctx, leave, err := s.Streams.Enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
		return serve(ctx, r)
	}
}

// serveRecovering calls serve, and turns a panic into a 500, as the routes do. One frame must not
// end the process. It releases the memory of the message before the answer is sent, because the
// client may send the next message then.
func (s *session) serveRecovering(ctx context.Context, r *clientFrame, serve func(context.Context, *clientFrame) error) (err error) {
	defer r.release()
	defer func() {
		if cause := recover(); cause != nil {
			s.Logger.ErrorContext(ctx, "frame panicked", "type", r.Type, "cause", cause)
			err = problem.New(http.StatusInternalServerError, "internal", "")
		}
	}()
	return serve(ctx, r)
}

// conclude sends the last frame of a request: ack, end or error. It frees the ID first, because the
// client may use the ID again as soon as it gets that frame. It returns the status and the code of
// a refusal for telemetry; 0 and "" otherwise. A client that has unsubscribed gets the ack of that,
// too.
func (s *session) conclude(ctx context.Context, r *clientFrame, err error) (status int, code string) {
	isClosed := ctx.Err() != nil
	hasUnsubscribed := s.releaseID(r.ID)
	switch {
	case err == nil:
		run, _ := r.run(ctx)
		s.send(acknowledge(r, run))
	case errors.Is(err, io.EOF):
		s.send(streamEndOf(r))
	case isClosed: // the client has unsubscribed or disconnected
	default:
		p := problem.Of(err)
		if p.Status >= http.StatusInternalServerError && p.Code != codeInterrupted && p.Code != problem.CodeFull {
			s.Logger.ErrorContext(ctx, "frame failed", "type", r.Type, "error", err)
		}
		s.send(refusalOf(r, p))
		status, code = p.Status, p.Code
	}
	if hasUnsubscribed {
		s.send(acknowledgement{Type: "ack", ID: r.ID, Request: "unsubscribe"})
	}
	return status, code
}

// register registers a request. The error is a 409 duplicate_id, or a 429 too_many_streams. After
// nil, conclude frees the ID.
func (s *session) register(id string, stop context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[id] != nil:
		p := problem.New(http.StatusConflict, "duplicate_id", "the id is in use on this socket, and the first subscription continues")
		p.Pointer = "/id"
		return p
	case len(s.open) >= s.MaxRequestsPerSocket:
		return problem.New(http.StatusTooManyRequests, "too_many_streams", "this socket has reached its limit of open requests: end one, or open another socket")
	}
	s.open[id] = &openRequest{stop: stop}
	return nil
}

// releaseID frees the ID of a request, and reports whether an unsubscribe waits for that.
func (s *session) releaseID(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hasUnsubscribed := s.open[id].unsubscribed
	delete(s.open, id)
	return hasUnsubscribed
}

// unsubscribe stops the open request with the frame's ID; conclude sends the ack when it has
// stopped. It returns false if no such request is open.
func (s *session) unsubscribe(r *clientFrame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := s.open[r.ID]
	if request == nil {
		return false
	}
	request.unsubscribed = true
	request.stop(errUnsubscribed)
	return true
}

// send sends a frame, and blocks while the client is slow. After a failure the connection is cut,
// and that ends the session, so send has no error.
func (s *session) send(frame any) {
	if body, err := json.Marshal(frame); err == nil {
		_ = s.out.Write(body)
	}
}
