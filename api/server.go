package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/scheduleroutes"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/api/sockets"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/api/threadroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
)

// AnnouncedTools knows the tools that workers have announced. It is safe for concurrent use.
type AnnouncedTools interface {
	agentroutes.Tools
	// Check returns what is wrong with the arguments of a call, and where; no reason = nothing is
	// known to be wrong.
	Check(ctx context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error)
	// Fits returns what is wrong with the answer to a tool's question, by its schema.
	Fits(schema, answer json.RawMessage) (pointer, reason string, err error)
}

// Config configures a Server.
type Config struct {
	Log       *stream.Log
	Snapshots *snapshot.Store  // of Log
	Follower  *stream.Follower // of Log
	Catalog   *catalog.Catalog // watched
	Temporal  client.Client
	Logger    *slog.Logger
	// Auth authenticates requests. Required.
	Auth auth.Authenticator
	// AdminRole is the role that may change what all tenants share. Defaults to "admin".
	AdminRole string
	// Tools knows the tools that workers have announced. nil = none.
	Tools AnnouncedTools
	// Known are the names in the folder of definitions: its workers know them.
	Known agents.Names

	// Inbox has the open interrupts of all threads. nil = there are no routes for it.
	Inbox *approvalroutes.Inbox

	// Schedules has the definitions of schedules. nil = there are no routes for them.
	Schedules *schedules.Store
	// Threads is the list of threads. nil = there is no route for it.
	Threads *threads.Index

	// MaxBody bounds the body of a request, and a message on a WebSocket, in bytes. Defaults to 10
	// MiB.
	MaxBody int64
	// BodyTime bounds how long a body may take to arrive. Defaults to 1 min.
	BodyTime time.Duration
	// Heartbeat is the longest silence of a stream, before a comment is sent. Defaults to 15 s,
	// which is also the maximum: proxies cut silent connections.
	Heartbeat time.Duration
	// Silence is how long a run may be silent before its workflow is looked at. Defaults to 5 s.
	Silence time.Duration
	// Patience is how long a client may take no bytes of an answer before it is cut. A client is
	// also cut if it takes less than live.MinRate over twice that time. Defaults to 30 s.
	Patience time.Duration
	// Origins are the origins that browsers may call from, exact, or "*" for all. Empty = none.
	Origins []string
	// SocketStreams bounds the open requests of one WebSocket. Defaults to 64.
	SocketStreams int
	// Sockets bounds the open WebSockets. Streams bounds the event streams, over WebSockets and
	// HTTP, together with answers to GET requests. They default to 10,000 and 20,000.
	Sockets, Streams int
	// ParkAfter is how long a run waits before it is parked. 0 = runs.DefaultParkAfter.
	ParkAfter time.Duration
	// Strict ends a stream before an event that AG-UI forbids. It checks every event for every
	// reader, and is meant for tests.
	Strict bool
	// Metrics serves /metrics. nil = there is no such route.
	Metrics http.Handler
}

// Server serves the HTTP API. It keeps no state that matters, and is safe for concurrent use.
type Server struct {
	Config
	problem.Writer
	request.Reader

	logger    *slog.Logger
	find      *lookup.Finder
	commands  *commands.Sender
	views     view.Viewer
	dispatch  *dispatch.Dispatcher
	silent    *silence.Watcher
	decisions *decisions.Service
	threads   *threadroutes.Routes
	sockets   *sockets.Sockets
	streams   *streams.Streams
	closed    context.Context // ends when streams have to end
	close     context.CancelFunc
}

// New returns a server.
func New(cfg Config) *Server {
	if cfg.AdminRole == "" {
		cfg.AdminRole = "admin"
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 10 << 20
	}
	if cfg.BodyTime == 0 {
		cfg.BodyTime = time.Minute
	}
	if cfg.Heartbeat == 0 || cfg.Heartbeat > 15*time.Second {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Silence == 0 {
		cfg.Silence = 5 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	if cfg.SocketStreams == 0 {
		cfg.SocketStreams = 64
	}
	if cfg.Sockets == 0 {
		cfg.Sockets = 10_000
	}
	if cfg.Streams == 0 {
		cfg.Streams = 20_000
	}
	s := &Server{Config: cfg, Writer: problem.NewWriter(cfg.Logger), Reader: request.NewReader(cfg.MaxBody, cfg.BodyTime), logger: cfg.Logger}
	s.views = view.Viewer{Follower: cfg.Follower, Snapshots: cfg.Snapshots}
	s.dispatch = &dispatch.Dispatcher{Log: cfg.Log, Temporal: cfg.Temporal}
	s.closed, s.close = context.WithCancel(context.Background())
	s.find = &lookup.Finder{Log: cfg.Log, Snapshots: cfg.Snapshots, Follower: cfg.Follower, Logger: cfg.Logger, Closed: s.closed}
	var index *inbox.Index
	var store *inbox.Store
	if cfg.Inbox != nil {
		index, store = cfg.Inbox.Index, cfg.Inbox.Store
	}
	s.silent = silence.NewWatcher(s.find, cfg.Temporal, cfg.Silence)
	s.streams = streams.New(streams.Config{
		Problems: s.Writer, Logger: cfg.Logger, Watcher: s.silent, Closed: s.closed, Heartbeat: cfg.Heartbeat, Silence: cfg.Silence, Strict: cfg.Strict, Most: cfg.Streams,
	})
	s.commands = &commands.Sender{Find: s.find, Dispatch: s.dispatch}
	s.decisions = decisions.NewService(s.find, s.commands, cfg.Catalog, cfg.Tools, index)
	s.sockets = sockets.New(sockets.Config{
		Problems: s.Writer, Logger: cfg.Logger, Find: s.find, Commands: s.commands, Decisions: s.decisions, Streams: s.streams, Views: s.views, Runs: s.runsOfSockets(), Closed: s.closed,
		MaxMessage: cfg.MaxBody, MessageTime: cfg.BodyTime, Heartbeat: cfg.Heartbeat, Patience: cfg.Patience, PerSocket: cfg.SocketStreams, Most: cfg.Sockets,
	})
	s.threads = threadroutes.New(threadroutes.Config{
		Problems: s.Writer, Bodies: s.Reader, Find: s.find, Commands: s.commands, Watcher: s.silent, Index: cfg.Threads, Inbox: store,
	})
	return s
}

// Drain ends the open streams and sockets. Clients come back with their last event ID. Drain comes
// before http.Server.Shutdown, which waits for streams; Wait comes after it, because Shutdown does
// not know sockets.
func (s *Server) Drain() {
	s.close()
	s.sockets.Drain()
}

// Wait waits, after Drain, for the end of the last socket, or of ctx.
func (s *Server) Wait(ctx context.Context) error { return s.sockets.Wait(ctx) }

// Handler serves the routes. No answer waits longer than Patience for a client that does not read.
func (s *Server) Handler() http.Handler { return live.Handler(s.routes(), s.Patience) }

func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	// An ID is one percent-encoded segment of a path, because it may have a "/". Segments are
	// decoded here, because gin reads "+" as a space.
	r.UseEscapedPath, r.UnescapePathValues = true, false
	r.HandleMethodNotAllowed = true
	r.Use(otelgin.Middleware("perdure", otelgin.WithGinFilter(traced)), countSizes)
	r.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, cause any) {
		s.logger.ErrorContext(c.Request.Context(), "handler panicked", "route", c.FullPath(), "cause", cause)
		s.Refuse(c, problem.New(http.StatusInternalServerError, "internal", ""))
	}))
	r.Use(s.LimitBodyTime)
	r.GET(socketPath, s.authenticate, s.checkQuery, s.sockets.Serve) // before CORS, whose refusals have no body
	approvals := approvalroutes.New(approvalroutes.Config{
		Problems: s.Writer, Bodies: s.Reader, Find: s.find, Decisions: s.decisions, Streams: s.streams, Inbox: s.Inbox, AdminRole: s.AdminRole,
	})
	approvals.RegisterLinks(r) // before CORS and authentication: a link needs neither
	if len(s.Origins) > 0 {
		r.Use(s.refuseOrigin, cors.New(s.cors())) // a browser's preflight request has no credentials
	}
	r.Use(s.authenticate, s.checkQuery)
	r.NoRoute(s.refuseRoute)
	r.NoMethod(s.refuseMethod)

	r.GET(rootPath, s.showRoot)
	r.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	r.GET("/readyz", s.ready)
	r.GET(openAPIPath, s.countStream, s.showOpenAPI)
	if s.Metrics != nil {
		r.GET("/metrics", gin.WrapH(s.Metrics))
	}
	v1 := r.Group("/v1", s.locate, s.countStream)
	definitions := &agentroutes.Routes{Writer: s.Writer, Reader: s.Reader, Catalog: s.Catalog, Tools: s.Tools, Known: s.Known, Logger: s.logger}
	definitions.Register(v1, s.administers)
	v1.POST("/agents/:agent/runs", s.startRun)
	v1.GET("/threads/:thread/events", s.threadEvents)
	v1.GET("/threads/:thread/runs/:run/events", s.runEvents)
	v1.POST("/threads/:thread/runs/:run/cancel", s.cancelRun)
	v1.POST("/threads/:thread/messages", s.steerThread)
	s.threads.Register(v1)
	approvals.Register(v1)
	if s.Schedules != nil {
		clock := &schedules.Clock{Temporal: s.Temporal, ParkAfter: s.ParkAfter}
		routes := &scheduleroutes.Routes{Writer: s.Writer, Reader: s.Reader, Schedules: s.Schedules, Clock: clock, Catalog: s.Catalog, Log: s.Log, Temporal: s.Temporal}
		routes.Register(v1)
	}
	v1.POST("/threads/:thread/pause", s.pauseThread)
	v1.POST("/threads/:thread/resume", s.resumeThread)
	return r
}

// traced reports whether a request has a span. Sockets have one for each frame; requests without a
// route are probes; the path of a link is a secret.
func traced(c *gin.Context) bool {
	path := c.Request.URL.Path
	return strings.HasPrefix(path, "/v1/") && path != socketPath && !strings.HasPrefix(path, approvalroutes.LinkPath)
}

// ready reports whether this node can serve: the log takes writes, Temporal answers, and the lists
// are current.
func (s *Server) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*time.Second)
	defer cancel()
	switch err := s.Log.Ready(ctx); {
	case errors.Is(err, stream.ErrFull):
		s.Refuse(c, problem.New(http.StatusServiceUnavailable, "log_full", "the log has no room; runs wait until it has"))
		return
	case err != nil:
		s.Refuse(c, problem.New(http.StatusServiceUnavailable, "log_unavailable", "the log does not answer"))
		return
	}
	if _, err := s.Temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		s.Refuse(c, problem.New(http.StatusServiceUnavailable, "temporal_unavailable", "Temporal does not answer"))
		return
	}
	if s.Inbox != nil && !s.Inbox.Index.Current() {
		s.Refuse(c, problem.New(http.StatusServiceUnavailable, "inbox_unavailable", "changes of the list of approvals are not being heard"))
		return
	}
	if s.Threads != nil && !s.Threads.Current() {
		s.Refuse(c, problem.New(http.StatusServiceUnavailable, "threads_unavailable", "changes of the list of threads are not being heard"))
		return
	}
	c.String(http.StatusOK, "ready\n")
}

// countStream counts the answer to a GET request, stream or not, as a stream of the node until the
// client has taken it. Commands do not count: their answers are small, and a full node must still
// take a cancel or a decision.
func (s *Server) countStream(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	if err := s.streams.Enter(); err != nil {
		s.Refuse(c, err)
		return
	}
	defer s.streams.Leave()
	c.Next()
}

// socketPath is the route of WebSockets.
const socketPath = "/v1/ws"
