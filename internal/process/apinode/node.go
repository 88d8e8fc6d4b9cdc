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
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/internal/workers/announce"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Config is what a node is made of. Connections belong to the caller.
type Config struct {
	Listener  net.Listener
	Snapshots *snapshot.Store // its log is the node's
	Temporal  client.Client
	// Agents are published at start. What a client has put stays, except with ForceAgents.
	Agents      []*agents.Definition
	ForceAgents bool
	// Known are the names of that folder, of all its documents.
	Known   agents.Names
	Origins []string
	// Auth finds out who calls. AdminRole is whose who may publish agents; empty = the default.
	Auth      auth.Authenticator
	AdminRole string
	// ParkAfter is how long a run waits for a person before it is parked. 0 = the default.
	ParkAfter time.Duration
	// Strict has every event checked that is sent.
	Strict bool
	// Sockets and Streams bound what is open at a time. 0 = the api's defaults.
	Sockets, Streams int
	// LinkKey signs links that decide, and PublicURL is where they lead. Empty = as [links.Open] and
	// [approvalroutes.Inbox] have it.
	LinkKey   []byte
	PublicURL string
	Metrics   http.Handler
	Logger    *slog.Logger
}

// Node is a running api.
type Node struct {
	server   *api.Server
	http     *http.Server
	unasked  *unasked
	follower *stream.Follower
	board    *announce.Board
	inbox    *inbox.Index
	threads  *threads.Index
	agents   *watch.Watch
	serving  chan error
	logger   *slog.Logger
}

// Start brings a node up: when it returns, requests are served.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	c, err := catalog.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		return nil, err
	}
	if err := publish(ctx, c, cfg); err != nil {
		return nil, err
	}
	n := &Node{serving: make(chan error, 1), unasked: newUnasked(), logger: cfg.Logger}
	if n.agents, err = c.Watch(ctx); err != nil {
		return nil, err
	}
	if n.board, err = announce.Watch(ctx, cfg.Snapshots.Log()); err != nil {
		n.agents.Stop()
		return nil, err
	}
	approvals, err := openInbox(ctx, cfg)
	if err != nil {
		n.unread()
		return nil, err
	}
	n.inbox = approvals.Index
	said, err := schedules.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		n.unread()
		return nil, err
	}
	if n.threads, err = threads.Watch(ctx, cfg.Snapshots.Log()); err != nil {
		n.unread()
		return nil, err
	}
	if n.follower, err = cfg.Snapshots.Log().Follow(ctx); err != nil {
		n.unread()
		return nil, err
	}
	n.server = api.New(api.Config{
		Log: cfg.Snapshots.Log(), Snapshots: cfg.Snapshots, Follower: n.follower, Catalog: c, Tools: n.board, Known: cfg.Known, Temporal: cfg.Temporal, Logger: cfg.Logger, Origins: cfg.Origins,
		Auth: cfg.Auth, AdminRole: cfg.AdminRole,
		ParkAfter: cfg.ParkAfter, Strict: cfg.Strict, Metrics: cfg.Metrics, Sockets: cfg.Sockets, Streams: cfg.Streams,
		Inbox: approvals, Schedules: said, Threads: n.threads,
	})
	n.http = &http.Server{
		Handler: n.server.Handler(), ReadHeaderTimeout: headerPatience, MaxHeaderBytes: maxHeader, IdleTimeout: 2 * time.Minute,
		WriteTimeout: refusalPatience,
		ErrorLog:     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn), ConnState: n.unasked.track, ConnContext: accepted,
	}
	go func() { n.serving <- n.http.Serve(cfg.Listener) }()
	return n, nil
}

// openInbox loads what waits for people: a node that has not serves nobody.
func openInbox(ctx context.Context, cfg Config) (*approvalroutes.Inbox, error) {
	store, err := inbox.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		return nil, err
	}
	keeper, err := links.Open(ctx, cfg.Snapshots.Log(), cfg.LinkKey)
	if err != nil {
		return nil, err
	}
	index, err := store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	return &approvalroutes.Inbox{Store: store, Index: index, Links: keeper, PublicURL: cfg.PublicURL}, nil
}

// sendBytes bounds what the kernel keeps of what a client has not read yet; Linux counts its own
// bookkeeping in, and doubles the figure for that. Left to itself it keeps up to 4 MiB for each
// client, and a viewer that stopped reading would be noticed that much later.
const sendBytes = 128 << 10

// accepted is an http.Server's ConnContext.
func accepted(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBytes) // where it can't be set, the kernel's own bound stands
		limitUnsent(tcp)
	}
	return ctx
}

// Bounds of what comes before a body, whose own are the server's: how long a client may take for a
// request's headers, and how many bytes they may have. net/http adds 4 KiB to those. refusalPatience is how long a client
// may take for an answer that net/http gives before the server's handler, which has deadlines of its own.
const (
	headerPatience  = 10 * time.Second
	maxHeader       = 60 << 10
	refusalPatience = 30 * time.Second
)

// publish makes the definitions of the directory current. That one is kept which a client has put since is
// no reason not to serve.
func publish(ctx context.Context, c *catalog.Catalog, cfg Config) error {
	for _, d := range cfg.Agents {
		_, err := c.Publish(ctx, d, cfg.ForceAgents)
		if errors.Is(err, catalog.ErrKept) {
			cfg.Logger.WarnContext(ctx, "an agent's file is not published: another definition was put meanwhile; --agents-force publishes the file", "agent", d.Name, "revision", d.Revision())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drainPatience bounds how long open requests may take to end.
const drainPatience = 3 * time.Second

// Stop ends the node: streams first, whose clients come back elsewhere, then everything else. Requests that do not end
// in time, because Temporal or the log is away, are cut and logged: the client may repeat them. It fails only if the
// server had failed before.
func (n *Node) Stop(ctx context.Context) error {
	n.server.Drain()
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	n.unasked.close()
	cut := n.http.Shutdown(ctx)
	if cut != nil { // what is still open is cut, so that nothing uses what is closed below
		cut = errors.Join(cut, n.http.Close())
	}
	cut = errors.Join(cut, n.server.Wait(ctx))
	if cut != nil {
		n.logger.WarnContext(ctx, "requests that did not end in time were cut", "error", cut)
	}
	var err error
	if serve := <-n.serving; !errors.Is(serve, http.ErrServerClosed) {
		err = fmt.Errorf("api: serve: %w", serve)
	}
	n.follower.Stop()
	n.unread()
	return err
}

// unread ends the reading of what processes tell each other.
func (n *Node) unread() {
	var wait sync.WaitGroup
	if n.inbox != nil {
		wait.Go(n.inbox.Stop)
	}
	if n.threads != nil {
		wait.Go(n.threads.Stop)
	}
	wait.Go(n.board.Stop)
	wait.Go(n.agents.Stop)
	wait.Wait()
}
