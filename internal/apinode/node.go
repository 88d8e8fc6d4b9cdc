// Package apinode puts the api together: the log, the agents, the follower and the HTTP server, for
// the api's own process and for the embedded one.
package apinode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/stream"
)

// Config is what a node is made of. Connections belong to the caller.
type Config struct {
	Listener net.Listener
	Log      *stream.Log
	Temporal client.Client
	// Agents are published at start.
	Agents  []*agents.Definition
	Origins []string
	// ParkAfter is how long a run waits for a person before it is parked. 0 = the default.
	ParkAfter time.Duration
	// Strict has every event checked that is sent.
	Strict bool
	// Sockets and Streams bound what is open at a time. 0 = the api's defaults.
	Sockets, Streams int
	Metrics          http.Handler
	Logger           *slog.Logger
}

// Node is a running api.
type Node struct {
	server   *api.Server
	http     *http.Server
	unasked  *unasked
	follower *stream.Follower
	unwatch  context.CancelFunc
	watching <-chan struct{}
	serving  chan error
}

// Start brings a node up: when it returns, requests are served.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	c, err := catalog.Open(ctx, cfg.Log)
	if err != nil {
		return nil, err
	}
	for _, d := range cfg.Agents {
		if _, err := c.Publish(ctx, d); err != nil {
			return nil, err
		}
	}
	n := &Node{serving: make(chan error, 1), unasked: newUnasked()}
	var watch context.Context
	watch, n.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	if n.watching, err = c.Watch(watch); err != nil {
		n.unwatch()
		return nil, err
	}
	if n.follower, err = cfg.Log.Follow(ctx); err != nil {
		n.unwatch()
		<-n.watching
		return nil, err
	}
	n.server = api.New(api.Config{
		Log: cfg.Log, Follower: n.follower, Catalog: c, Temporal: cfg.Temporal, Logger: cfg.Logger, Origins: cfg.Origins,
		ParkAfter: cfg.ParkAfter, Strict: cfg.Strict, Metrics: cfg.Metrics, Sockets: cfg.Sockets, Streams: cfg.Streams,
	})
	n.http = &http.Server{
		Handler: n.server.Handler(), ReadHeaderTimeout: headerPatience, MaxHeaderBytes: maxHeader, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn), ConnState: n.unasked.track,
	}
	go func() { n.serving <- n.http.Serve(cfg.Listener) }()
	return n, nil
}

// Bounds of what comes before a body, whose own are the server's: how long a client may take for a
// request's headers, and how many bytes they may have. net/http adds 4 KiB to those.
const (
	headerPatience = 10 * time.Second
	maxHeader      = 60 << 10
)

// drainPatience bounds how long open requests may take to end.
const drainPatience = 5 * time.Second

// Stop ends the node: streams first, whose clients come back elsewhere, then everything else.
func (n *Node) Stop(ctx context.Context) error {
	n.server.Drain()
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	n.unasked.close()
	err := n.http.Shutdown(ctx)
	if err != nil { // what is still open then is cut, so that nothing uses what is closed below
		err = errors.Join(err, n.http.Close())
	}
	err = errors.Join(err, n.server.Wait(ctx))
	if serve := <-n.serving; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("api: serve: %w", serve))
	}
	n.follower.Stop()
	n.unwatch()
	<-n.watching
	return err
}
