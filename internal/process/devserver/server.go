package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/internal/process/version"
)

// DefaultNamespace is the Temporal namespace used when [Options.Namespace] is empty.
const DefaultNamespace = "default"

// withDefaults sets the defaults, and makes Data absolute.
func (o Options) withDefaults() (Options, error) {
	if o.Data == "" {
		return o, errors.New("devserver: Options.Data is required")
	}
	// Temporal's plugin shares SQLite connections in the process by path. Two spellings of one path
	// would be two pools over one file.
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

// Server is a running pair of a Temporal server and a NATS server, with the lock of their data
// directory. Start makes it; the caller must call Stop. Its methods are safe for concurrent use.
type Server struct {
	namespace string
	lock      *dirLock
	temporal  *temporalServer
	nats      *natsServer

	stop    sync.Once
	stopped chan struct{}
	stopErr error // written before stopped is closed
}

// Start starts both servers concurrently, and returns when both respond: the namespace accepts
// workflows and JetStream accepts messages.
//
// Errors: [*LockedError] if another process uses the directory, [*DirectoryError] if it cannot be
// the data directory, [*PortError] if a port is in use. If Start fails, nothing keeps running. If
// ctx ends, Start still waits for Temporal's start-up, which cannot be interrupted, and then stops
// what it has started.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := openDir(o.Data)
	if err != nil {
		return nil, err
	}
	worker.SetBinaryChecksum(version.BinaryID()) // of Temporal's system workers
	if o.WorkflowCache > 0 {
		worker.SetStickyWorkflowCacheSize(o.WorkflowCache) // applies only before those workers start
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

// Namespace returns the Temporal namespace that [Start] has prepared.
func (s *Server) Namespace() string { return s.namespace }

// NATSURL returns the URL of the NATS server, for other processes.
func (s *Server) NATSURL() string { return s.nats.url() }

// ConnectNATS connects to the NATS server within the process, without a socket. The caller closes
// the connection before [Server.Stop].
func (s *Server) ConnectNATS(opts ...nats.Option) (*nats.Conn, error) {
	return s.nats.connect(opts...)
}

// Orphans returns the tasks that were under way when the directory's last owner ended. The list was
// read before this server started. It is empty after a clean stop of all workers.
func (s *Server) Orphans() []Orphan { return s.temporal.orphans }

// Stop stops both servers, waits for them, and unlocks the directory. The caller first stops
// workers and closes clients: they only get errors afterwards. If ctx ends first, Stop returns its
// error, and the stop continues in the background. Further calls wait for the same stop.
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

// stopAll stops a server that may be started only partly: its parts may be nil.
func (s *Server) stopAll() error {
	var g errgroup.Group
	if s.temporal != nil {
		g.Go(s.temporal.stop)
	}
	if s.nats != nil {
		g.Go(s.nats.stop)
	}
	err := g.Wait()
	// The lock is released last, and even after an error: the next owner must find no server that
	// still writes.
	return errors.Join(err, s.lock.release())
}
