package devserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// syncInterval is how often JetStream calls fsync. A loss of power may take the data of one
// interval.
const syncInterval = 100 * time.Millisecond

// natsServer is the embedded NATS server. startNATS makes it, and starts the goroutine of
// watchDisk; stop ends both.
type natsServer struct {
	server     *server.Server
	log        *natsLog
	cancel     context.CancelFunc
	watchEnded chan struct{} // closed when watchDisk has returned
}

// startNATS starts the server. If it fails, nothing keeps running. Errors: *PortError,
// *DirectoryError.
func startNATS(o Options) (*natsServer, error) {
	port := o.NATSPort
	if port == 0 {
		port = server.RANDOM_PORT
	} else if err := probePort("NATS", "--nats-port", port); err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Data, "nats")
	srv, err := server.NewServer(&server.Options{
		ServerName:             "perdure",
		Host:                   loopback,
		Port:                   port,
		JetStream:              true,
		StoreDir:               dir,
		SyncInterval:           syncInterval,
		DisableJetStreamBanner: true,
		NoSigs:                 true, // signals belong to the program
	})
	if err != nil {
		return nil, fmt.Errorf("devserver: configure NATS: %w", err)
	}
	log := newNATSLog(o)
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	ctx, cancel := context.WithCancel(context.Background())
	n := &natsServer{server: srv, log: log, cancel: cancel, watchEnded: make(chan struct{})}
	if err := n.startError(); err != nil {
		close(n.watchEnded)
		return nil, errors.Join(&DirectoryError{Dir: o.Data, Err: err}, n.stop())
	}
	go func() {
		defer close(n.watchEnded)
		n.watchDisk(ctx, dir, o.Logger)
	}()
	return n, nil
}

// startError returns the error of the server's Start, which has no result of its own.
func (n *natsServer) startError() error {
	if err := n.log.fatalError(); err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	if !n.server.Running() || n.server.Addr() == nil || !n.server.JetStreamEnabled() {
		return errors.New("start NATS: no JetStream")
	}
	return nil
}

// url returns the URL for clients in other processes.
func (n *natsServer) url() string { return n.server.ClientURL() }

// connect connects within the process.
func (n *natsServer) connect(opts ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect("", append(opts, nats.InProcessServer(n.server))...)
	if err != nil {
		return nil, fmt.Errorf("devserver: connect to NATS: %w", err)
	}
	return conn, nil
}

// stop ends watchDisk, then the server, and waits for both.
func (n *natsServer) stop() error {
	n.cancel()
	<-n.watchEnded
	n.server.Shutdown()
	n.server.WaitForShutdown()
	return nil
}
