package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/socket"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/stream"
)

// session is what one client does over one socket. One goroutine reads; each request that takes time
// has one of its own, and blocks nobody but itself:
//
//	read ──ping, unsubscribe, what is refused──► answered at once
//	  └───run, subscribe, cancel──► live, one goroutine each ──slot──► begun ──► pump ──► the socket
//
// There is no queue: a stream holds the part of the log that it is sending, and reads the next one from the feed of its thread,
// or from the log, when the client has taken that. So a socket costs no more than its streams, however slow its client.
type session struct {
	server *Server
	conn   *socket.Conn
	slots  chan struct{}
	work   sync.WaitGroup
	lost   context.CancelCauseFunc // ends everything

	mu   sync.Mutex
	live map[string]*started
}

// started is a request that is being served.
type started struct {
	stop context.CancelCauseFunc
	left bool // unsubscribe waits for the end
}

const (
	// slotsPerSocket bounds how many requests of a socket are begun at a time: until a run is placed,
	// a past looked over, a cancel durable.
	slotsPerSocket = 8
	// maxFaults bounds how many invalid frames may come one after the other.
	maxFaults = 100
	// lastWords is how long what a client has asked for before it left may still take to happen.
	lastWords = 2 * time.Second
)

var (
	errLeft         = errors.New("api: the socket has ended")
	errUnsubscribed = errors.New("api: the client has unsubscribed")
	errFaults       = errors.New("api: too many invalid frames")
)

func newSession(s *Server, conn *socket.Conn) *session {
	return &session{server: s, conn: conn, slots: make(chan struct{}, slotsPerSocket), live: map[string]*started{}}
}

// serve serves the socket to its end and returns the code that it was closed with.
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

// keepAlive pings, and closes the socket when the server goes down.
func (s *session) keepAlive(ctx context.Context) {
	beat := time.NewTicker(s.server.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			s.conn.Ping()
		case <-s.server.closed.Done():
			s.conn.Close(socket.GoingAway, "the server is shutting down")
			return
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errExpired) {
				s.conn.Close(socket.Unauthorized, "the credentials have expired")
			}
			return
		}
	}
}

// read takes frames until the socket ends.
func (s *session) read(ctx context.Context) error {
	faults := 0
	for {
		frame, err := s.conn.Read()
		if err != nil {
			return err
		}
		r, err := decodeRequest(frame)
		if err == nil {
			err = s.take(ctx, r)
		}
		if err == nil {
			faults = 0
			continue
		}
		p := problemOf(err)
		s.send(refuse(r, p))
		if p.Code != "invalid_frame" {
			faults = 0
		} else if faults++; faults == maxFaults {
			return errFaults
		}
	}
}

// take answers a request, or starts it.
func (s *session) take(ctx context.Context, r *request) error {
	if errors.Is(context.Cause(ctx), errExpired) { // the socket closes; until then nobody asks over it
		return errExpired
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

// start serves a request in a goroutine. What serve returns is how it is answered: nil = an ack,
// io.EOF = the end, anything else a refusal.
func (s *session) start(ctx context.Context, r *request, serve func(context.Context, *request) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	if err := s.enter(r.ID, stop); err != nil {
		stop(err)
		return err
	}
	s.work.Go(func() {
		defer stop(nil)
		ctx, end := telemetry.Frame(ctx, r.Type)
		if run, err := r.run(ctx); err == nil {
			ctx = ofRun(ctx, run, "")
		}
		end(s.conclude(ctx, r, s.guard(ctx, r, serve)))
	})
	return nil
}

// streaming is serve for a request that is answered with a stream, if the node has room for it.
func (s *session) streaming(serve func(context.Context, *request) error) func(context.Context, *request) error {
	return func(ctx context.Context, r *request) error {
		if !s.server.streams.take() {
			return errFull()
		}
		defer s.server.streams.leave()
		return serve(ctx, r)
	}
}

// guard keeps a panic from ending the process, as the routes' recovery does.
func (s *session) guard(ctx context.Context, r *request, serve func(context.Context, *request) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.server.logger.ErrorContext(ctx, "frame panicked", "type", r.Type, "cause", cause)
			err = problem(http.StatusInternalServerError, "internal", "")
		}
	}()
	return serve(ctx, r)
}

// conclude says the last word to a request, and tells how it failed. The id is free by then: whoever
// hears that word may use it again.
func (s *session) conclude(ctx context.Context, r *request, err error) (status int, code string) {
	gone := ctx.Err() != nil
	left := s.leave(r.ID)
	switch {
	case err == nil:
		run, _ := r.run(ctx)
		s.send(ack(r, run))
	case errors.Is(err, io.EOF):
		s.send(end(r))
	case gone: // nobody waits for an answer
	default:
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError && p.Code != codeInterrupted && p.Code != codeFull {
			s.server.logger.ErrorContext(ctx, "frame failed", "type", r.Type, "error", err)
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
		p := problem(http.StatusConflict, "duplicate_id", "the id is in use on this socket; what it stands for goes on")
		p.Pointer = "/id"
		return p
	case len(s.live) >= s.server.SocketStreams:
		return problem(http.StatusTooManyRequests, "too_many_streams", "this socket has as much open as it may; end something first, or open another socket")
	}
	s.live[id] = &started{stop: stop}
	return nil
}

// leave frees an id and tells whether an unsubscribe waits for that.
func (s *session) leave(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.live[id].left
	delete(s.live, id)
	return left
}

// unsubscribe stops a request, and reports false if there is none to be stopped.
func (s *session) unsubscribe(r *request) bool {
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

// send sends a frame. If that fails the socket has been cut, which the reader learns.
func (s *session) send(frame any) {
	if body, err := json.Marshal(frame); err == nil {
		_ = s.conn.Write(body)
	}
}
