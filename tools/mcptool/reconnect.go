package mcptool

import (
	"context"
	"errors"
)

// errOutdated ends a connection whose server has outdated secrets. The next one follows at once.
var errOutdated = errors.New("mcptool: the secrets have changed")

// renew makes a new connection if the server has outdated secrets. It blocks until the connection
// can be used or has failed, or ctx ends.
func (s *Server) renew(ctx context.Context) {
	s.mu.Lock()
	if s.session != nil && s.dialer.isOutdated() {
		s.session, s.renewal.over = nil, make(chan struct{})
		s.renewal.requested <- struct{}{} // has room: a connection without a session gets no request
		s.logger.InfoContext(ctx, "MCP server starts again after its active calls, because its secrets have changed", "active", len(s.watched))
	}
	over := s.renewal.over
	s.mu.Unlock()
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-ctx.Done(): // also after Stop
	}
}

// failRenewal ends a renewal without a connection, also one whose request came too late for the
// connection.
func (s *Server) failRenewal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewal.end()
	select {
	case <-s.renewal.requested:
	default:
	}
}

// awaitCalls blocks until no call is active, the connection has ended, or Stop. No call begins,
// because the session is detached. It returns the error of a connection that has ended.
func (s *Server) awaitCalls(ended <-chan error) error {
	s.mu.Lock()
	if len(s.watched) == 0 {
		s.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	s.renewal.idle = idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case err := <-ended:
		return err
	case <-s.life.Done():
		return s.life.Err()
	}
}
