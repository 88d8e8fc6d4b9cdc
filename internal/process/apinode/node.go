package apinode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/console"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/internal/workers/announce"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Config configures a node. The caller owns the connections and closes them after Stop.
type Config struct {
	// Listener is where the node serves. The node closes it.
	Listener net.Listener
	// TLS is how it serves TLS, with HTTP/2; nil = plain HTTP/1.1.
	TLS       *tls.Config
	Snapshots *snapshot.Store // of the node's log
	Temporal  client.Client
	// Agents are the definitions of the folder, which Start publishes. A definition that was
	// published over HTTP since stays, unless ForceAgents is set.
	Agents      []*agents.Definition
	ForceAgents bool
	// Known returns the names that the documents of the folder define. It is called concurrently.
	Known func() agents.Names
	// Directory returns the directory of definitions, for the list of agents. It is called
	// concurrently. nil = there is none.
	Directory func() agentroutes.Directory
	Origins   []string
	// Auth authenticates callers, and Policies decides what they may do. Sessions are those of
	// browsers; nil = there are none.
	Auth     auth.Authenticator
	Sessions *sessions.Sessions
	Policies *policy.Engine
	// Retention has the times to live. nil = the defaults.
	Retention *retention.Rules
	// Principals has the approvers and services of the operator. nil = there are none.
	Principals *principals.Principals
	// Sources has the webhooks by which other systems send events. nil = there are none.
	Sources *source.Set
	// ParkAfter is how long a run waits for interrupts before it is parked. 0 = the default.
	ParkAfter time.Duration
	// Strict checks every event before the node sends it.
	Strict bool
	// Sockets and Streams bound the open WebSockets and streams. 0 = the defaults of the API.
	Sockets, Streams int
	// Quotas are the rates and quotas of tenants. nil = the defaults.
	Quotas *quota.Table
	// LinkKey signs links that decide, and PublicURL is their base. Empty = the defaults of
	// [links.Open] and [approvalroutes.Inbox].
	LinkKey   []byte
	PublicURL string
	// Console serves the console.
	Console bool
	// Files stores the files of tenants. nil = there are none.
	Files *files.Store
	// Environment describes the process and its servers.
	Environment systemroutes.Environment
	Logger      *slog.Logger
}

// Node is a running API node. Start makes it and starts its goroutines; Stop ends them.
type Node struct {
	server   *api.Server
	catalog  *catalog.Catalog
	http     *http.Server
	newConns *newConns
	follower *stream.Follower
	board    *announce.Board
	inbox    *inbox.Index
	waits    *events.Waits
	audit    *auditLog
	remover  *retention.Remover
	threads  *threads.Index
	files    *files.Index // nil = there are none
	times    *schedules.Counter
	counting context.CancelFunc // ends the count of bytes
	measured func()             // ends the metrics of quotas and waits
	counted  sync.WaitGroup     // its goroutine
	agents   *catalog.Watches
	serving  chan error
	logger   *slog.Logger
}

// Start starts a node, and returns when it serves requests. The indexes are loaded by then. The
// caller must call Stop.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	c, err := catalog.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		return nil, err
	}
	if err := publish(ctx, c, cfg); err != nil {
		return nil, err
	}
	n := &Node{catalog: c, serving: make(chan error, 1), newConns: trackNewConns(), logger: cfg.Logger}
	if n.agents, err = c.Watch(ctx); err != nil {
		return nil, err
	}
	if n.board, err = announce.Watch(ctx, cfg.Snapshots.Log()); err != nil {
		n.agents.Stop()
		return nil, err
	}
	approvals, err := openInbox(ctx, cfg)
	if err != nil {
		n.stopWatches()
		return nil, err
	}
	n.inbox = approvals.Index
	eventStore, err := events.Open(ctx, cfg.Snapshots.Log())
	if err == nil {
		n.waits, err = eventStore.Watch(ctx)
	}
	if err != nil {
		n.stopWatches()
		return nil, err
	}
	scheduleStore, err := schedules.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		n.stopWatches()
		return nil, err
	}
	if n.times, err = scheduleStore.Count(ctx, cfg.Snapshots.Log()); err != nil {
		n.stopWatches()
		return nil, err
	}
	ledger, err := usage.Open(ctx, cfg.Snapshots.Log())
	if err != nil {
		n.stopWatches()
		return nil, err
	}
	if n.threads, err = threads.Watch(ctx, cfg.Snapshots.Log()); err != nil {
		n.stopWatches()
		return nil, err
	}
	stored := (*api.Files)(nil)
	if cfg.Files != nil {
		if n.files, err = cfg.Files.Watch(ctx); err != nil {
			n.stopWatches()
			return nil, err
		}
		stored = &api.Files{Store: cfg.Files, Index: n.files}
	}
	if n.audit, err = openAudit(ctx, cfg.Snapshots.Log(), cfg.Policies, cfg.Logger); err != nil {
		n.stopWatches()
		return nil, err
	}
	n.observeFiles(cfg)
	if n.follower, err = cfg.Snapshots.Log().Follow(ctx); err != nil {
		n.stopWatches()
		return nil, err
	}
	var pages *console.Console
	if cfg.Console {
		if pages, err = console.New(settings(cfg)); err != nil {
			n.stopWatches()
			return nil, err
		}
	}
	logBytes := quota.NewByteMeter(cfg.Quotas, n.follower, cfg.Logger)
	var counting context.Context
	counting, n.counting = context.WithCancel(context.WithoutCancel(ctx))
	n.counted.Go(func() { logBytes.Run(counting) })
	n.server = api.New(api.Config{
		Log:       cfg.Snapshots.Log(),
		Snapshots: cfg.Snapshots,
		Follower:  n.follower,
		Catalog:   c,
		Tools:     n.board,
		Known:     cfg.Known,
		Directory: cfg.Directory,
		Temporal:  cfg.Temporal,
		Logger:    cfg.Logger,
		Origins:   cfg.Origins,
		Auth:      cfg.Auth, Sessions: cfg.Sessions, Policies: cfg.Policies, Principals: cfg.Principals,
		ParkAfter: cfg.ParkAfter, Strict: cfg.Strict,
		Limits:     api.Limits{MaxSockets: cfg.Sockets, MaxStreams: cfg.Streams},
		Quotas:     cfg.Quotas,
		LogBytes:   logBytes.Count,
		PublicKeys: n.board.PublicKeys,
		Workers:    n.workers, ModelCalls: n.modelCalls, Environment: cfg.Environment,
		Audit: &n.audit.Audit, Console: pages,
		Events: eventStore, Waits: n.waits, Sources: cfg.Sources, Inbox: approvals, Schedules: scheduleStore, ScheduleCounts: n.times, Threads: n.threads, Usage: ledger, Files: stored,
	})
	n.measured = n.measure()
	n.remover = retention.Begin(retention.Config{
		Rules: cfg.Retention, Log: cfg.Snapshots.Log(), Index: n.threads, Delete: n.server.Deletion(), Holds: n.audit.Holds, Writer: n.audit.Writer, Logger: cfg.Logger,
		Files: cfg.Files, FileIndex: n.files,
	})
	n.http = &http.Server{
		Handler: n.server.Handler(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, IdleTimeout: 2 * time.Minute,
		WriteTimeout: refusalTimeout,
		ErrorLog:     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn), ConnState: n.newConns.track, ConnContext: connContext,
	}
	n.http.TLSConfig = cfg.TLS
	go func() {
		if cfg.TLS == nil {
			n.serving <- n.http.Serve(cfg.Listener)
		} else {
			n.serving <- n.http.ServeTLS(cfg.Listener, "", "") // the configuration has the certificate
		}
	}()
	return n, nil
}

// workers returns the workers that announce themselves.
func (n *Node) workers() []systemroutes.Worker {
	workers := []systemroutes.Worker{}
	for _, w := range n.board.Workers() {
		workers = append(workers, systemroutes.Worker{
			Name: w.Name, Version: w.Version, Deployment: w.Deployment, BuildID: w.BuildID,
			Queues: w.Queues, Tools: w.Tools, Programs: w.Programs, SeenAt: w.SeenAt.UTC(),
		})
	}
	return workers
}

// settings returns what the page of the console knows before its first request.
func settings(cfg Config) console.Settings {
	auth := console.AuthNone
	switch {
	case cfg.Sessions != nil:
		auth = console.AuthSession
	case cfg.Environment.NeedsToken:
		auth = console.AuthToken
	}
	links := cfg.Environment.Links()
	prefix := ""
	if public, err := url.Parse(cfg.PublicURL); err == nil {
		prefix = strings.TrimRight(public.EscapedPath(), "/")
	}
	return console.Settings{Auth: auth, Version: version.Read().Version, Prefix: prefix, WorkflowURL: links.Workflow, TraceURL: links.Trace}
}

// observeFiles records the contents of the files of the configuration in the audit log.
func (n *Node) observeFiles(cfg Config) {
	if keys, ok := cfg.Auth.(observed); ok {
		n.audit.observe(audit.LoadKeys, keys)
	}
	if cfg.Principals != nil {
		n.audit.observe(audit.LoadPrincipals, cfg.Principals)
	}
	if cfg.Quotas != nil {
		n.audit.observe(audit.LoadQuotas, cfg.Quotas)
	}
	if cfg.Retention != nil {
		n.audit.observe(audit.LoadRetention, cfg.Retention)
	}
}

// openInbox opens the inbox and loads its open interrupts.
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

// sendBytes bounds the data of a client that the kernel keeps because the client has not read it,
// in bytes. Linux doubles the figure for its bookkeeping. By default it keeps up to 4 MiB per
// client, so the node would notice much later that a client has stopped reading.
const sendBytes = 128 << 10

// connContext is the ConnContext of the http.Server: it configures each new connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	if tcp, locked := c.(*net.TCPConn); locked {
		_ = tcp.SetWriteBuffer(sendBytes) // on failure the kernel's own bound applies
		limitUnsent(tcp)
	}
	return ctx
}

// Bounds of requests before their body. headerTimeout is how long a client may take to send the
// headers. maxHeader bounds their size in bytes; net/http adds 4 KiB. refusalTimeout bounds the
// responses of net/http itself, which it sends without the handler and its deadlines.
const (
	headerTimeout  = 10 * time.Second
	maxHeader      = 60 << 10
	refusalTimeout = 30 * time.Second
)

// publish publishes the definitions of the folder. If a definition from HTTP has precedence over
// that of the folder, publish logs a warning and does not fail.
func publish(ctx context.Context, c *catalog.Catalog, cfg Config) error {
	for _, d := range cfg.Agents {
		_, err := c.Publish(ctx, d, cfg.ForceAgents)
		if errors.Is(err, catalog.ErrKept) {
			cfg.Logger.WarnContext(ctx, "an agent's file is not published, because another definition was published over HTTP: --agents-force publishes the file", "agent", d.Name, "revision", d.Revision())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Publish publishes a definition of the folder, and returns its revision. It fails with
// [catalog.ErrKept] if another definition was published over HTTP, except with force. The node's
// next input of the agent uses the definition.
func (n *Node) Publish(ctx context.Context, d *agents.Definition, force bool) (revision string, err error) {
	return n.catalog.Publish(ctx, d, force)
}

// Handler returns the handler of all routes, for a second listener.
func (n *Node) Handler() http.Handler { return n.http.Handler }

// drainTimeout bounds how long open requests may take after Stop.
const drainTimeout = 3 * time.Second

// Stop ends the node: first the streams, whose clients reconnect to other nodes, then everything
// else. Requests that do not end within drainTimeout, because Temporal or the log is unavailable,
// are cut and logged; clients may repeat them. Stop returns an error only if the HTTP server had
// failed before.
func (n *Node) Stop(ctx context.Context) error {
	n.server.Drain()
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	n.newConns.close()
	shutdownErr := n.http.Shutdown(ctx)
	if shutdownErr != nil { // requests that still run must not use what is closed below
		shutdownErr = errors.Join(shutdownErr, n.http.Close())
	}
	shutdownErr = errors.Join(shutdownErr, n.server.Wait(ctx))
	if shutdownErr != nil {
		n.logger.WarnContext(ctx, "requests that did not end in time were cut", "error", shutdownErr)
	}
	var err error
	if serveErr := <-n.serving; !errors.Is(serveErr, http.ErrServerClosed) {
		err = fmt.Errorf("api: serve: %w", serveErr)
	}
	n.measured()
	n.remover.Stop()
	n.counting()
	n.counted.Wait()
	n.follower.Stop()
	n.stopWatches()
	return err
}

// stopWatches stops the watches and the audit log concurrently and waits for them. board and agents
// must be set.
func (n *Node) stopWatches() {
	var wait sync.WaitGroup
	if n.audit != nil {
		wait.Go(n.audit.Writer.Close)
	}
	if n.waits != nil {
		wait.Go(n.waits.Stop)
	}
	if n.inbox != nil {
		wait.Go(n.inbox.Stop)
	}
	if n.times != nil {
		wait.Go(n.times.Stop)
	}
	if n.threads != nil {
		wait.Go(n.threads.Stop)
	}
	if n.files != nil {
		wait.Go(n.files.Stop)
	}
	wait.Go(n.board.Stop)
	wait.Go(n.agents.Stop)
	wait.Wait()
}
