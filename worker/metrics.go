package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/perdure/perdure/internal/process/config"
)

// metricsServer serves /metrics. It is the only port of a worker, and only open if it is
// configured. A nil *metricsServer is valid and serves nothing.
type metricsServer struct {
	http    http.Server
	address string
	serving chan error // has the error with which Serve has ended
}

// serveMetrics starts the server; nil = addr is empty. The caller must call stop. Errors:
// *config.VariableError.
func serveMetrics(ctx context.Context, addr string, metrics http.Handler, logger *slog.Logger) (*metricsServer, error) {
	if addr == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &config.VariableError{Name: "PERDURE_METRICS_ADDR", Err: err}
	}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", metrics)
	s := &metricsServer{address: listener.Addr().String(), serving: make(chan error, 1)}
	s.http = http.Server{
		Handler: routes, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go func() { s.serving <- s.http.Serve(listener) }()
	return s, nil
}

// addr returns the address of the server; "" = there is none.
func (s *metricsServer) addr() string {
	if s == nil {
		return ""
	}
	return s.address
}

// stop closes the server without waiting for scrapes in progress.
func (s *metricsServer) stop() error {
	if s == nil {
		return nil
	}
	err := s.http.Close()
	if serve := <-s.serving; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("metrics: %w", serve))
	}
	return err
}
