package api

import (
	"context"
	"encoding/json"
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
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/deletion"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/sessionroutes"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/api/sockets"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/api/stuck"
	"github.com/perdure/perdure/api/subjectroutes"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/api/threadroutes"
	"github.com/perdure/perdure/api/usageroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/console"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
)

// AnnouncedTools knows the tools that workers have announced, and their JSON schemas. Its knowledge
// may lag behind the workers. It is safe for concurrent use.
type AnnouncedTools interface {
	agentroutes.Tools
	decisions.Schemas
}

// Config configures a Server. Log to Policies are required; the other fields have defaults. The caller
// owns all of them, and closes them only after Server.Wait has returned.
type Config struct {
	Log       *stream.Log
	Snapshots *snapshot.Store  // of Log
	Follower  *stream.Follower // of Log
	Catalog   *catalog.Catalog // Catalog.Watch must be running
	Temporal  client.Client
	Logger    *slog.Logger
	// Auth authenticates every request except those of the public routes, of webhooks, and of links that
	// name their approver. Required.
	Auth auth.Authenticator
	// Sessions are the sessions of browsers, whose requests Auth authenticates. nil = the routes of
	// sign-in are missing.
	Sessions *sessions.Sessions
	// Policies decides what callers may do. Required.
	Policies *policy.Engine
	// Audit is the audit log. nil = nothing is recorded, and its routes are missing.
	Audit *auditroutes.Audit
	// Principals has the approvers whom links may name, and the services as whom schedules may run.
	// nil = there are none.
	Principals *principals.Principals
	// Tools knows the tools that workers have announced. nil = no tool is known, and arguments and
	// answers are checked by workers only.
	Tools AnnouncedTools
	// Known returns the names in all documents of the folder of definitions of this process: tools,
	// agents, MCP servers, providers and scripts. Publishing an agent that uses them causes no
	// warning. It is called concurrently. nil = there are none.
	Known func() agents.Names
	// Directory returns that directory for the list of agents. It is called concurrently. nil = there
	// is none.
	Directory func() agentroutes.Directory

	// PublicKeys returns the public keys of the assertions of all workers, as JSON Web Keys. It is
	// called concurrently. nil = there are none.
	PublicKeys func() []json.RawMessage

	// Environment describes this process and its servers.
	Environment systemroutes.Environment
	// Workers returns the workers that announce themselves. It is called concurrently. nil = there
	// are none.
	Workers func() []systemroutes.Worker
	// ModelCalls returns what keeps workers from calling models. It is called concurrently. nil =
	// nothing does.
	ModelCalls func(ctx context.Context) systemroutes.ModelCalls

	// Inbox has the open interrupts of all threads. nil = the routes of the inbox and of links are
	// missing.
	Inbox *approvalroutes.Inbox
	// Events takes the events of other systems, Waits has the runs that wait. nil = the routes of both
	// are missing.
	Events *events.Store
	Waits  *events.Waits
	// Sources has the webhooks by which other systems send events. nil = there are none.
	Sources *source.Set

	// Schedules has the definitions of schedules. nil = the routes of schedules are missing.
	Schedules *schedules.Store
	// Threads is the index of threads, in memory. nil = the route that lists threads is missing.
	Threads *threads.Index

	// Files stores the files of tenants. nil = its routes are missing, and base64 data stays in messages.
	Files *Files
	// Usage counts what runs have used. nil = the route of the report is missing.
	Usage *usage.Ledger
	// Quotas are the rates and the quotas of tenants. nil = the defaults.
	Quotas *quota.Table
	// ScheduleCounts counts the schedules. nil = they have no quotas.
	ScheduleCounts *schedules.Counter
	// LogBytes counts the bytes of a tenant in the log. nil = they have no quota.
	LogBytes quota.Count

	Limits

	// Console serves the console below console.Path. nil = there is no console.
	Console *console.Console

	// Origins are the origins whose pages may call the API from a browser. An entry is an exact
	// origin, or has one "*" as a wildcard; "*" alone allows all. Empty = only pages of the API's
	// own origin.
	Origins []string
	// ParkAfter is how long the workflow of a new run waits for an interrupt before it parks. 0 =
	// runs.DefaultParkAfter.
	ParkAfter time.Duration
	// Strict ends a stream before an event that AG-UI forbids. It verifies every event for every
	// reader, so only tests set it.
	Strict bool
}

// Limits bound what one client, and all clients together, may take of a node. Zero values have
// defaults.
type Limits struct {
	// MaxBody bounds the body of a request, and a message on a WebSocket, in bytes. Defaults to 10
	// MiB.
	MaxBody int64
	// BodyTime bounds how long a body, or a message on a WebSocket, may take to arrive. Defaults to
	// 1 min.
	BodyTime time.Duration
	// Heartbeat is the longest time in which a stream sends no bytes. Then the API sends an SSE
	// comment, or a ping on a WebSocket. Defaults to 15 s, which is also the maximum: proxies cut
	// silent connections.
	Heartbeat time.Duration
	// Silence is how long a run may write no record before a node with a reader of the run asks
	// Temporal for the state of its workflow (package silence). Defaults to 5 s.
	Silence time.Duration
	// WriteTimeout is how long a client may take no bytes of an answer before the API cuts the
	// connection. The API also cuts a client that takes less than live.MinRate over twice that
	// time. Defaults to 30 s.
	WriteTimeout time.Duration
	// MaxSocketRequests bounds the open requests of one WebSocket, with or without a stream.
	// Defaults to 64.
	MaxSocketRequests int
	// MaxSockets bounds the open WebSockets of the node. MaxStreams bounds its event streams, over
	// WebSockets and HTTP, together with answers to GET requests. They default to 10,000 and
	// 20,000. More requests get a 503 node_full.
	MaxSockets, MaxStreams int
	// MaxAnswerBytes bounds the memory of answers to GET requests that clients have not read yet, in
	// bytes, without the first 64 KiB of each answer and the first 256 KiB of each stream. Streams
	// beyond it end, and their clients continue later. Defaults to 256 MiB. Other
	// GET requests get a 503 node_full, or a 429 quota_exceeded as for MaxBodyBytes.
	MaxAnswerBytes int64
	// MaxBodyBytes bounds the memory of the bodies of all requests, and of messages on WebSockets,
	// that the API has not finished, in bytes, without the first 64 KiB of each. Defaults to 256
	// MiB. Larger bodies get a 503 node_full, or a 429 quota_exceeded if their caller has its share
	// (quota.Bytes).
	MaxBodyBytes int64
}

// Server serves the HTTP API of one node. Its state is the open streams and sockets, their
// counters, and caches; everything durable is in the log and in Temporal. It is safe for concurrent
// use.
//
// Life cycle: New, then Handler in an http.Server. To stop: Drain, http.Server.Shutdown, Wait. A
// Server starts no goroutine of its own; each stream and socket ends its goroutines.
//
// The embedded Writer and Reader give handlers Refuse, ReadJSON and ReadBody.
type Server struct {
	Config
	problem.Writer
	request.Reader

	logger         *slog.Logger
	finder         *lookup.Finder
	access         *access.Guard
	attachments    *attachments.Attachments // nil = there are no files
	commands       *commands.Sender
	views          view.Viewer
	dispatch       *dispatch.Dispatcher
	silenceWatcher *silence.Watcher
	decisions      *decisions.Service
	deletion       *deletion.Threads
	threads        *threadroutes.Routes
	sockets        *sockets.Sockets
	streams        *streams.Streams
	answers        *request.Answers
	rates          *quota.Rates
	meter          *quota.Meter
	readiness      readiness
	started        time.Time
	recorder       *auditing.Recorder
	closed         context.Context    // ends with Drain: all streams and sockets end
	close          context.CancelFunc // ends closed
}

// New returns a server. It replaces zero fields of cfg by their defaults, and connects the packages
// below this one. It does no I/O.
func New(cfg Config) *Server {
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
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	if cfg.MaxSocketRequests == 0 {
		cfg.MaxSocketRequests = 64
	}
	if cfg.MaxSockets == 0 {
		cfg.MaxSockets = 10_000
	}
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = 20_000
	}
	if cfg.MaxBodyBytes == 0 {
		cfg.MaxBodyBytes = 256 << 20
	}
	if cfg.MaxAnswerBytes == 0 {
		cfg.MaxAnswerBytes = 256 << 20
	}
	bodies := quota.NewBytes(cfg.MaxBodyBytes, cfg.Quotas, quota.BodyBytes)
	s := &Server{Config: cfg, Writer: problem.NewWriter(cfg.Logger), Reader: request.NewReader(cfg.MaxBody, cfg.BodyTime, bodies), logger: cfg.Logger}
	answers := quota.NewBytes(cfg.MaxAnswerBytes, cfg.Quotas, quota.AnswerBytes)
	s.answers, s.rates = request.NewAnswers(answers), quota.NewRates(cfg.Quotas)
	var entries *store.Writer
	var holds *store.Holds
	if cfg.Audit != nil {
		entries, holds = cfg.Audit.Writer, cfg.Audit.Holds
	}
	s.recorder = auditing.NewRecorder(entries, cfg.Logger)
	if cfg.Sessions != nil {
		cfg.Sessions.Observe(s.observeSessions)
	}
	s.views = view.Viewer{Follower: cfg.Follower, Snapshots: cfg.Snapshots}
	s.dispatch = &dispatch.Dispatcher{Log: cfg.Log, Temporal: cfg.Temporal}
	s.closed, s.close = context.WithCancel(context.Background())
	s.finder = &lookup.Finder{Log: cfg.Log, Snapshots: cfg.Snapshots, Follower: cfg.Follower, Logger: cfg.Logger, Closed: s.closed}
	var index *inbox.Index
	var store *inbox.Store
	if cfg.Inbox != nil {
		index, store = cfg.Inbox.Index, cfg.Inbox.Store
	}
	s.silenceWatcher = silence.NewWatcher(s.finder, cfg.Temporal, cfg.Usage, cfg.Silence)
	s.streams = streams.New(streams.Config{
		Problems:   s.Writer,
		Logger:     cfg.Logger,
		Watcher:    s.silenceWatcher,
		Closed:     s.closed,
		Heartbeat:  cfg.Heartbeat,
		Silence:    cfg.Silence,
		Strict:     cfg.Strict,
		Answers:    answers,
		MaxStreams: cfg.MaxStreams,
		Quotas:     cfg.Quotas,
	})
	s.access = &access.Guard{Policies: cfg.Policies, Log: cfg.Log, Threads: cfg.Threads}
	s.meter = s.newMeter()
	s.attachments = cfg.Files.attachments(s.access, s.meter)
	s.commands = &commands.Sender{Finder: s.finder, Dispatch: s.dispatch, Files: s.attachments}
	s.decisions = decisions.NewService(s.finder, s.commands, cfg.Catalog, cfg.Tools, index, s.access)
	s.sockets = sockets.New(sockets.Config{
		Problems:             s.Writer,
		Logger:               cfg.Logger,
		Finder:               s.finder,
		Commands:             s.commands,
		Decisions:            s.decisions,
		Streams:              s.streams,
		Views:                s.views,
		Access:               s.access,
		Recorder:             s.recorder,
		Runs:                 s.runsOfSockets(),
		Rates:                s.rates,
		Quotas:               cfg.Quotas,
		Closed:               s.closed,
		Bodies:               bodies,
		MaxMessage:           cfg.MaxBody,
		MessageTime:          cfg.BodyTime,
		Heartbeat:            cfg.Heartbeat,
		WriteTimeout:         cfg.WriteTimeout,
		MaxRequestsPerSocket: cfg.MaxSocketRequests,
		MaxSockets:           cfg.MaxSockets,
	})
	s.meter, s.started = s.newMeter(), time.Now()
	s.deletion = &deletion.Threads{Finder: s.finder, Commands: s.commands, Watcher: s.silenceWatcher, Inbox: store, Events: cfg.Events, Holds: holds, Files: s.attachments}
	s.threads = threadroutes.New(threadroutes.Config{
		Meter:    s.meter,
		Problems: s.Writer, Bodies: s.Reader, Finder: s.finder, Commands: s.commands, Deletion: s.deletion, Watcher: s.silenceWatcher,
		Stuck: &stuck.Checker{Temporal: cfg.Temporal}, Access: s.access, Index: cfg.Threads, Files: s.attachments,
	})
	return s
}

// Deletion deletes threads as DELETE /v1/threads/{thread} does, for the retention.
func (s *Server) Deletion() *deletion.Threads { return s.deletion }

// Drain ends the open streams and sockets, and refuses new ones. It does not wait. Clients
// reconnect to another node with their last event ID, and no run is cancelled.
//
// Call Drain before http.Server.Shutdown, which waits for streams; call Wait after it, because
// Shutdown does not know hijacked connections such as WebSockets.
func (s *Server) Drain() {
	s.close()
	s.sockets.Drain()
}

// Wait blocks until the last socket has ended, or until ctx ends, whose cause it returns. Call it
// after Drain; before, it may never return.
func (s *Server) Wait(ctx context.Context) error { return s.sockets.Wait(ctx) }

// Handler returns the handler of all routes. It cuts a client that does not read its answer for
// about WriteTimeout, so a stalled client cannot hold a goroutine for ever. Event streams need this
// handler: live.NewWriter refuses other response writers.
func (s *Server) Handler() http.Handler {
	routes := http.Handler(s.routes())
	if s.Console != nil {
		routes = withConsole(routes, s.Console)
	}
	return live.Handler(routes, s.WriteTimeout)
}

// withConsole returns a handler that has the console serve its paths, to every caller: its files are
// public, and what the page shows comes from routes that authenticate.
func withConsole(routes http.Handler, pages *console.Console) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console.Serves(r.URL.Path) {
			pages.ServeHTTP(w, r)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// routes registers the middleware and all routes. The order is deliberate: a middleware applies
// only to the routes that are registered after it.
//
//   - sizes, recovery and the time limit of bodies: every route
//   - the WebSocket route, with its own authentication
//   - links, which authenticate if they name no approver, webhooks, and sign-in
//   - CORS, then authentication and the check of the query: all other routes
func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	// An ID is one percent-encoded segment of a path, because it may contain a "/". Handlers decode
	// segments themselves (request.Segment): gin would decode "+" as a space.
	r.UseEscapedPath, r.UnescapePathValues = true, false
	r.HandleMethodNotAllowed = true
	r.Use(otelgin.Middleware("perdure", otelgin.WithGinFilter(traced)), countSizes)
	// The panic is logged once, with its route. The client gets a problem without details.
	r.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, cause any) {
		s.logger.ErrorContext(c.Request.Context(), "handler panicked", "route", c.FullPath(), "cause", cause)
		s.Refuse(c, problem.New(http.StatusInternalServerError, "internal", ""))
	}))
	r.Use(s.LimitBodyTime, s.EndBody, s.answers.CountAnswer)
	record := s.recorder.Record(auditAction)
	r.GET(socketPath, s.authenticate, s.checkQuery, record, s.sockets.Serve) // before CORS, whose refusals have no body
	approvals := approvalroutes.New(approvalroutes.Config{
		Problems: s.Writer, Bodies: s.Reader, Finder: s.finder, Decisions: s.decisions, Streams: s.streams, Access: s.access, Principals: s.Principals, Inbox: s.Inbox,
	})
	approvals.RegisterLinks(r, s.authenticate, record) // before CORS and authentication: some links need neither
	eventRoutes := s.eventRoutes()
	eventRoutes.RegisterWebhooks(r, record)
	signIn := &sessionroutes.Routes{Writer: s.Writer, Sessions: s.Sessions}
	if s.Sessions != nil {
		signIn.RegisterPublic(r, record)
	}
	if len(s.Origins) > 0 {
		r.Use(s.refuseOrigin, cors.New(s.cors())) // a browser's preflight request has no credentials
	}
	r.Use(s.authenticate, s.checkQuery)
	r.NoRoute(s.refuseRoute)
	r.NoMethod(s.refuseMethod)

	r.GET(rootPath, s.Handle(s.showRoot))
	r.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	r.GET(readinessPath, s.Handle(s.ready))
	r.GET(keysPath, s.countStream, s.Handle(s.showKeys))
	r.GET(openAPIPath, s.countStream, s.Handle(s.showOpenAPI))
	signIn.Register(r)
	r.GET("/v1/quotas", s.labelRequest, s.Handle(s.showQuotas)) // counts as no stream: a tenant without places sees why
	// Answers to GET requests count as streams of the node. Handlers of long POST answers count by
	// themselves (startRun).
	v1 := r.Group("/v1", s.labelRequest, record, s.countStream)
	definitions := &agentroutes.Routes{Writer: s.Writer, Reader: s.Reader, Catalog: s.Catalog, Tools: s.Tools, Known: s.Known, Directory: s.Directory, Logger: s.logger, Meter: s.meter, Access: s.access}
	definitions.Register(v1)
	s.newSystem().Register(v1)
	v1.POST("/agents/:agent/runs", s.Handle(s.startRun))
	v1.GET("/threads/:thread/events", s.Handle(s.threadEvents))
	v1.GET("/threads/:thread/runs/:run/events", s.Handle(s.runEvents))
	v1.GET("/threads/:thread/runs/:run/trace", s.Handle(s.runTrace))
	v1.POST(strings.TrimPrefix(streamsPath, "/v1"), s.Handle(s.severalStreams))
	v1.POST("/threads/:thread/runs/:run/cancel", s.Handle(s.cancelRun))
	v1.POST("/threads/:thread/messages", s.Handle(s.steerThread))
	s.threads.Register(v1)
	approvals.Register(v1)
	s.registerSchedules(v1)
	if s.Threads != nil {
		routes := &subjectroutes.Routes{
			Writer: s.Writer, Access: s.access, Log: s.Log, Snapshots: s.Snapshots, Index: s.Threads, Deletion: s.deletion, Sessions: s.Sessions, Files: s.attachments,
			Schedules: s.Schedules, Scheduler: &schedules.Scheduler{Temporal: s.Temporal, ParkAfter: s.ParkAfter},
		}
		if s.Audit != nil {
			routes.Audit = s.Audit.Log
		}
		routes.Register(v1)
	}
	s.registerFiles(v1)
	eventRoutes.Register(v1)
	if s.Usage != nil {
		routes := &usageroutes.Routes{Writer: s.Writer, Access: s.access, Ledger: s.Usage}
		routes.Register(v1)
	}
	if s.Audit != nil {
		routes := &auditroutes.Routes{Writer: s.Writer, Reader: s.Reader, Audit: s.Audit, Access: s.access}
		routes.Register(v1)
	}
	v1.POST("/threads/:thread/pause", s.Handle(s.pauseThread))
	v1.POST("/threads/:thread/resume", s.Handle(s.resumeThread))
	return r
}

// countStream is middleware that counts a GET request as a stream of the node until the client has
// taken the answer, whether the answer is a stream or not: also a slow reader of a large page
// occupies memory. A full node answers 503 node_full, and a tenant with too many streams gets 429
// quota_exceeded.
//
// Other methods do not count. Their answers are small, and a full node must still accept a cancel
// or a decision. startRun, whose answer is a stream, counts itself.
func (s *Server) countStream(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	ctx, leave, err := s.streams.Enter(c.Request.Context())
	if err != nil {
		s.Refuse(c, err)
		return
	}
	defer leave()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// socketPath is the route of WebSockets (package sockets), and streamsPath that of several streams in
// one response.
const (
	socketPath  = "/v1/ws"
	streamsPath = "/v1/streams"
)
