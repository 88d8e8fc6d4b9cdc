package api

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/socket"
)

const (
	socketPath = "/v1/ws"
	// subprotocol is the name of the frames in ws_frame.go. Clients need not ask for it.
	subprotocol = "ag-ui.perdure.v1"
)

// openSocket turns the request into a WebSocket and serves it. It returns when all goroutines of the socket have ended.
func (s *Server) openSocket(c *gin.Context) {
	if err := s.sockets.enter(); err != nil {
		s.Refuse(c, err)
		return
	}
	defer s.sockets.leave()
	conn, err := socket.Upgrade(c.Writer, c.Request, socket.Options{
		Subprotocol: subprotocol, MaxMessage: s.MaxBody, MessageTime: s.BodyTime, Heartbeat: s.Heartbeat, Patience: s.Patience,
	})
	var refused *socket.HandshakeError
	switch {
	case errors.As(err, &refused):
		c.Header("Upgrade", "websocket")
		s.Refuse(c, problem.New(http.StatusUpgradeRequired, "upgrade_required", "this route speaks WebSocket (RFC 6455)"))
		return
	case err != nil:
		return // the client is gone
	}
	ctx, end := telemetry.Socket(c.Request.Context(), c.Request.Header)
	end(newSession(s, conn).serve(ctx))
}

// sockets counts the open sockets of a server, so that it can wait for them.
type sockets struct {
	room *semaphore.Weighted

	mu       sync.Mutex
	open     int
	draining bool
	ended    chan struct{} // closed when no socket is open or can be opened; nil = nothing waits
}

// enter reports whether another socket may be opened.
func (s *sockets) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return streams.ErrDrain
	}
	if !s.room.TryAcquire(1) {
		return problem.Full()
	}
	s.open++
	return nil
}

func (s *sockets) leave() {
	s.room.Release(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.settle()
}

func (s *sockets) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
}

// settle closes ended if no socket is open.
func (s *sockets) settle() {
	if s.open == 0 && s.draining && s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

func (s *sockets) wait(ctx context.Context) error {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
	ended := s.ended
	s.settle()
	s.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
