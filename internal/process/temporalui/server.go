// Package temporalui serves Temporal's own web interface, with which developers read the workflows
// of perdure dev.
//
// The interface needs no sign-in, and can terminate workflows. The package therefore answers only
// requests to the names of this machine, which prevents DNS rebinding, and refuses requests that
// change something from pages of other origins. It does not use the server of the module, which
// accepts every host, and ends the process if its port is in use.
package temporalui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"github.com/perdure/perdure/internal/auth"
)

// Config configures a Server. All fields are required.
type Config struct {
	Listener  net.Listener // on loopback; Start takes it over
	Temporal  string       // host:port of Temporal's frontend, which must accept connections without TLS
	Namespace string       // that the interface shows first
	Logger    *slog.Logger
}

// Server is a running server of the interface. Start makes it; the caller must call Stop.
type Server struct {
	http    http.Server
	serving chan error // has the error with which Serve has ended
}

// Start serves the interface on the listener of cfg. After an error the listener is closed.
func Start(cfg Config) (*Server, error) {
	handler, err := handler(cfg)
	if err != nil {
		return nil, errors.Join(err, cfg.Listener.Close())
	}
	s := &Server{serving: make(chan error, 1)}
	s.http = http.Server{
		// An answer takes long if the interface waits for the next event of a history.
		Handler: handler, ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	go func() { s.serving <- s.http.Serve(cfg.Listener) }()
	return s, nil
}

// Stop closes the server without waiting for requests in progress.
func (s *Server) Stop() error {
	err := s.http.Close()
	if serve := <-s.serving; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("the UI of Temporal: %w", serve))
	}
	return err
}

// handler returns the routes of the interface, after the checks of host and origin. It connects to
// Temporal when the first request needs that.
func handler(cfg Config) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(&config.Config{
		TemporalGRPCAddress: cfg.Temporal,
		EnableUI:            true,
		DefaultNamespace:    cfg.Namespace,
		DisableNewsFetch:    true, // the interface requests nothing from other hosts
		HideLogs:            true,
	})
	if err != nil {
		return nil, fmt.Errorf("the UI of Temporal: %w", err)
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, fmt.Errorf("the UI of Temporal: %w", err)
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, fmt.Errorf("the UI of Temporal: %w", err)
	}
	routes := echo.New()
	routes.Logger.SetOutput(io.Discard) // its only lines are about clients that are gone
	route.SetHealthRoute(routes)
	if err := route.SetAPIRoutes(routes, provider, nil); err != nil {
		return nil, fmt.Errorf("the UI of Temporal: %w", err)
	}
	if err := route.SetUIRoutes(routes, "", assets); err != nil {
		return nil, fmt.Errorf("the UI of Temporal: %w", err)
	}
	route.SetRenderRoute(routes, "/") // texts in Markdown, which the interface shows in frames
	return checkHost(http.NewCrossOriginProtection().Handler(protect(routes))), nil
}

// checkHost refuses requests to other hosts than this machine with a 403.
func checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !auth.IsLoopback(r.Host) {
			http.Error(w, "the UI of Temporal answers only requests to localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// protect has browsers refuse to show the interface in frames of other origins.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
