package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// DefaultNamespace is the Temporal namespace used when [Options.Namespace] is empty.
const DefaultNamespace = "default"

func (o Options) withDefaults() (Options, error) {
	if o.Data == "" {
		return o, errors.New("devserver: Options.Data is required")
	}
	// SQLite connections are shared within the process by path: two spellings of one
	// path would be two pools over one file.
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return o, &DirectoryError{Dir: o.Data, Err: err}
	}
	o.Data = data
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.LogLevel == nil {
		o.LogLevel = slog.LevelWarn
	}
	return o, nil
}

// Server is a running pair of Temporal and NATS. Its methods may be called from
// any goroutine.
type Server struct {
	namespace string
	lock      *dirLock
	temporal  *temporalServer
	nats      *natsServer

	stop    sync.Once
	stopped chan struct{}
	stopErr error // written before stopped is closed
}

// Start brings up both servers at once and returns when both answer: the
// namespace takes workflows and JetStream takes messages.
//
// Errors: [*LockedError] when another process uses the directory,
// [*DirectoryError] when it cannot be used as a data directory, [*PortError] when
// a port is taken. A failed Start leaves nothing running. When ctx ends, Start
// still waits for Temporal's start-up, which cannot be interrupted, before it
// stops what it started.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := openDir(o.Data)
	if err != nil {
		return nil, err
	}
	s := &Server{namespace: o.Namespace, lock: lock, stopped: make(chan struct{})}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.temporal, err = startTemporal(gctx, o)
		return err
	})
	g.Go(func() (err error) {
		s.nats, err = startNATS(o)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// TemporalAddress returns the host:port of Temporal's frontend.
func (s *Server) TemporalAddress() string { return s.temporal.address }

// Namespace returns the Temporal namespace that [Start] made usable.
func (s *Server) Namespace() string { return s.namespace }

// NATSURL returns the URL of the NATS server, for other processes.
func (s *Server) NATSURL() string { return s.nats.url() }

// ConnectNATS connects within the process, without a socket. The caller closes
// the connection before [Server.Stop].
func (s *Server) ConnectNATS(opts ...nats.Option) (*nats.Conn, error) {
	return s.nats.connect(opts...)
}

// Orphans lists the activity attempts that were running when the directory's
// last owner ended, as of before this server started. Empty after a clean stop
// of all workers.
func (s *Server) Orphans() []Orphan { return s.temporal.orphans }

// Stop stops both servers, waits for them, and gives the directory free. Stop the
// workers and close the clients first: they only see errors afterwards. When ctx
// ends first, Stop returns its error while the stop goes on in the background.
// Further calls wait for the same stop.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		go func() {
			defer close(s.stopped)
			s.stopErr = s.stopAll()
		}()
	})
	select {
	case <-s.stopped:
		return s.stopErr
	case <-ctx.Done():
		return fmt.Errorf("devserver: stop: %w", ctx.Err())
	}
}

// stopAll also serves a half-started server, whose parts may be nil.
func (s *Server) stopAll() error {
	var g errgroup.Group
	if s.temporal != nil {
		g.Go(s.temporal.stop)
	}
	if s.nats != nil {
		g.Go(s.nats.stop)
	}
	err := g.Wait()
	// Last, and in any case: whoever gets the lock must find the directory at rest.
	return errors.Join(err, s.lock.release())
}
