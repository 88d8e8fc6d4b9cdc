// Package metricserver serves what operators read from a process, on an address of its own: metrics and
// probes. They need no credentials, so the address must not be reachable for clients.
package metricserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/process/config"
)

// Server serves GET /metrics, /healthz and /readyz. A nil *Server is valid and serves nothing. It is
// safe for concurrent use.
type Server struct {
	http    http.Server
	address string
	ready   atomic.Pointer[http.Handler]
	serving chan error // has the error with which Serve has ended
}

// Start starts the server; nil = addr is empty. /healthz answers 200 from then on, and /readyz 503
// until SetReady. The caller must call Stop. Errors: *config.VariableError.
func Start(ctx context.Context, addr string, metrics http.Handler, logger *slog.Logger) (*Server, error) {
	if addr == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &config.VariableError{Name: "PERDURE_METRICS_ADDR", Err: err}
	}
	s := &Server{address: listener.Addr().String(), serving: make(chan error, 1)}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", metrics)
	routes.HandleFunc("GET /healthz", answer(http.StatusOK, "ok\n"))
	routes.HandleFunc("GET /readyz", s.serveReady)
	s.http = http.Server{
		Handler: routes, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go func() { s.serving <- s.http.Serve(listener) }()
	return s, nil
}

// Addr returns the address of the server; "" = there is none.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.address
}

// SetReady has /readyz served by a handler; nil = it answers 200.
func (s *Server) SetReady(h http.Handler) {
	if s == nil {
		return
	}
	if h == nil {
		h = answer(http.StatusOK, "ready\n")
	}
	s.ready.Store(&h)
}

// serveReady serves GET /readyz.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	if h := s.ready.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	answer(http.StatusServiceUnavailable, "starting\n")(w, r)
}

// answer returns a handler that answers with a text.
func answer(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // a client that is gone needs no answer
	}
}

// Stop closes the server without waiting for requests in progress.
func (s *Server) Stop() error {
	if s == nil {
		return nil
	}
	err := s.http.Close()
	if serve := <-s.serving; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("metrics: %w", serve))
	}
	return err
}
