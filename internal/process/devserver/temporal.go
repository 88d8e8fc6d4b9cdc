package devserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/temporal"
)

// readyTimeout bounds the wait for Temporal's first response after its start. A healthy server
// responds within milliseconds.
const readyTimeout = 30 * time.Second

// temporalServer is the embedded Temporal server. startTemporal makes it; stop ends it.
type temporalServer struct {
	server  temporal.Server
	log     *temporalLog
	db      *database
	block   *portBlock
	address string
	orphans []Orphan
}

// startTemporal prepares the database and starts the server, and returns when the server responds.
// If it fails, nothing keeps running. Errors: *PortError, *DirectoryError.
func startTemporal(ctx context.Context, o Options) (*temporalServer, error) {
	block, err := reservePorts()
	if err != nil {
		return nil, err
	}
	s, err := startTemporalAt(ctx, o, block)
	if err != nil {
		block.release()
	}
	return s, err
}

// startTemporalAt is startTemporal with the ports of block, which the server's stop releases.
func startTemporalAt(ctx context.Context, o Options, block *portBlock) (*temporalServer, error) {
	ports, err := temporalPorts(o.TemporalPort, block)
	if err != nil {
		return nil, err
	}
	db := newDatabase(filepath.Join(o.Data, "temporal.db"))
	orphans, err := db.prepare(ctx, o.Namespace)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("start Temporal: %w", context.Cause(ctx))
	case err != nil:
		return nil, &DirectoryError{Dir: o.Data, Err: err}
	}
	s := &temporalServer{log: newTemporalLog(o), db: db, block: block, address: hostPort(ports.frontend), orphans: orphans}
	if err := s.start(ports, o); err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	if err := s.awaitReady(ctx, o.Namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("start Temporal: %w", err), s.stop())
	}
	return s, nil
}

// start starts the server. A fatal log line of Temporal becomes the error, see [temporalLog.Fatal].
func (s *temporalServer) start(ports servicePorts, o Options) (err error) {
	defer recoverFatal(&err)
	s.server, err = temporal.NewServer(serverOptions(s.log, s.db, ports, o)...)
	if err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

// awaitReady requests a workflow that does not exist. The response "not found" has passed the
// frontend, the namespace cache, a history shard and the database, so all of them work.
func (s *temporalServer) awaitReady(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{
		HostPort:  s.address,
		Namespace: namespace,
		Logger:    sdklog.NewStructuredLogger(discard),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.DescribeWorkflowExecution(ctx, "is-the-server-ready", "")
	if _, absent := errors.AsType[*serviceerror.NotFound](err); absent {
		return nil
	}
	return err
}

// stop stops the server, waits for it, releases its ports, and checkpoints the database.
func (s *temporalServer) stop() error {
	s.log.mute()
	defer s.block.release()
	return errors.Join(s.server.Stop(), s.db.checkpoint())
}
