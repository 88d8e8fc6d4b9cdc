package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/socket"
	"github.com/perdure/perdure/stream"
)

// session serves one client over one socket. One goroutine reads. Each request that takes time has
// a goroutine of its own, and does not block others:
//
//	read ──ping, unsubscribe, refusals──► answered at once
//	  └───run, subscribe, cancel──► live, one goroutine each ──slot──► begun ──► pump ──► the socket
//
// There is no queue: a stream holds the part of the log that it sends, and reads the next part when
// the client has taken it. So a socket costs no more than its streams, however slow its client is.
type session struct {
	*Sockets

	conn  *socket.Conn
	slots chan struct{}
	work  sync.WaitGroup
	lost  context.CancelCauseFunc // ends the session

	mu   sync.Mutex
	live map[string]*started
}

// started is a request that is being served.
type started struct {
	stop context.CancelCauseFunc
	left bool // an unsubscribe waits for its end
}

const (
	// slotsPerSocket bounds how many requests of a socket begin concurrently: until a run is
	// placed, a past is read, or a cancel is durable.
	slotsPerSocket = 8
	// maxFaults bounds the invalid frames in a row.
	maxFaults = 100
	// lastWords is how long a request may take that a client sent before it closed the socket.
	lastWords = 2 * time.Second
)

var (
	errLeft         = errors.New("api: the socket has ended")
	errUnsubscribed = errors.New("api: the client has unsubscribed")
	errFaults       = errors.New("api: too many invalid frames")
)

func newSession(of *Sockets, conn *socket.Conn) *session {
	return &session{Sockets: of, conn: conn, slots: make(chan struct{}, slotsPerSocket), live: map[string]*started{}}
}

// serve serves the socket to its end, and returns its close code.
func (s *session) serve(ctx context.Context) int {
	ctx, s.lost = context.WithCancelCause(ctx)
	s.work.Go(func() { s.keepAlive(ctx) })
	err := s.read(ctx)
	if errors.Is(err, errFaults) {
		s.conn.Close(socket.Policy, "too many invalid frames")
	} else {
		s.conn.Close(socket.CodeOf(err), "")
	}
	s.lost(errLeft)
	s.work.Wait()
	return s.conn.Wait()
}

// keepAlive sends pings, and closes the socket when the server stops.
func (s *session) keepAlive(ctx context.Context) {
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			s.conn.Ping()
		case <-s.Closed.Done():
			s.conn.Close(socket.GoingAway, "the server is shutting down")
			return
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), streams.ErrExpired) {
				s.conn.Close(socket.Unauthorized, "the credentials have expired")
			}
			return
		}
	}
}

// read reads frames until the socket ends.
func (s *session) read(ctx context.Context) error {
	faults := 0
	for {
		frame, err := s.conn.Read()
		if err != nil {
			return err
		}
		r, err := decodeRequest(frame)
		if err == nil {
			err = s.handle(ctx, r)
		}
		if err == nil {
			faults = 0
			continue
		}
		p := problem.Of(err)
		s.send(refuse(r, p))
		if p.Code != "invalid_frame" {
			faults = 0
		} else if faults++; faults == maxFaults {
			return errFaults
		}
	}
}

// handle answers a request, or starts it.
func (s *session) handle(ctx context.Context, r *clientFrame) error {
	if errors.Is(context.Cause(ctx), streams.ErrExpired) { // the socket is about to close
		return streams.ErrExpired
	}
	switch r.Type {
	case "ping":
		s.send(ack(r, stream.Run{}))
	case "unsubscribe":
		if !s.unsubscribe(r) {
			s.send(ack(r, stream.Run{})) // it has ended by itself
		}
	case "run":
		return s.start(ctx, r, s.streaming(s.run))
	case "subscribe":
		return s.start(ctx, r, s.streaming(s.subscribe))
	case "cancel":
		return s.start(ctx, r, s.cancel)
	case "steer":
		return s.start(ctx, r, s.steer)
	case "decide":
		return s.start(ctx, r, s.decide)
	case "tool_result":
		return s.start(ctx, r, s.toolResult)
	default:
		return invalidFrame("/type", "is no type of frame")
	}
	return nil
}

// start serves a request in a goroutine. serve returns nil for an ack, io.EOF for the end, and any
// other error for a refusal.
func (s *session) start(ctx context.Context, r *clientFrame, serve func(context.Context, *clientFrame) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	if err := s.enter(r.ID, stop); err != nil {
		stop(err)
		return err
	}
	s.work.Go(func() {
		defer stop(nil)
		ctx, end := telemetry.Frame(ctx, r.Type)
		if run, err := r.run(ctx); err == nil {
			ctx = request.WithRun(ctx, run, "")
		}
		end(s.conclude(ctx, r, s.guard(ctx, r, serve)))
	})
	return nil
}

// streaming is serve for a request with a stream, if the node has room for it.
func (s *session) streaming(serve func(context.Context, *clientFrame) error) func(context.Context, *clientFrame) error {
	return func(ctx context.Context, r *clientFrame) error {
		if err := s.Streams.Enter(); err != nil {
			return err
		}
		defer s.Streams.Leave()
		return serve(ctx, r)
	}
}

// guard recovers from a panic, as the routes do.
func (s *session) guard(ctx context.Context, r *clientFrame, serve func(context.Context, *clientFrame) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Logger.ErrorContext(ctx, "frame panicked", "type", r.Type, "cause", cause)
			err = problem.New(http.StatusInternalServerError, "internal", "")
		}
	}()
	return serve(ctx, r)
}

// conclude sends the last frame of a request. Its ID is free by then: the client may use it again
// at once.
func (s *session) conclude(ctx context.Context, r *clientFrame, err error) (status int, code string) {
	gone := ctx.Err() != nil
	left := s.releaseID(r.ID)
	switch {
	case err == nil:
		run, _ := r.run(ctx)
		s.send(ack(r, run))
	case errors.Is(err, io.EOF):
		s.send(end(r))
	case gone: // nobody waits for an answer
	default:
		p := problem.Of(err)
		if p.Status >= http.StatusInternalServerError && p.Code != codeInterrupted && p.Code != problem.CodeFull {
			s.Logger.ErrorContext(ctx, "frame failed", "type", r.Type, "error", err)
		}
		s.send(refuse(r, p))
		status, code = p.Status, p.Code
	}
	if left {
		s.send(acknowledgement{Type: "ack", ID: r.ID, Request: "unsubscribe"})
	}
	return status, code
}

func (s *session) enter(id string, stop context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.live[id] != nil:
		p := problem.New(http.StatusConflict, "duplicate_id", "the id is in use on this socket; what it stands for goes on")
		p.Pointer = "/id"
		return p
	case len(s.live) >= s.PerSocket:
		return problem.New(http.StatusTooManyRequests, "too_many_streams", "this socket has as much open as it may; end something first, or open another socket")
	}
	s.live[id] = &started{stop: stop}
	return nil
}

// releaseID frees an ID, and reports whether an unsubscribe waits for that.
func (s *session) releaseID(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.live[id].left
	delete(s.live, id)
	return left
}

// unsubscribe stops a request. It returns false if there is none.
func (s *session) unsubscribe(r *clientFrame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.live[r.ID]
	if at == nil {
		return false
	}
	at.left = true
	at.stop(errUnsubscribed)
	return true
}

// send sends a frame. After a failure the socket is cut, which the reader notices.
func (s *session) send(frame any) {
	if body, err := json.Marshal(frame); err == nil {
		_ = s.conn.Write(body)
	}
}
