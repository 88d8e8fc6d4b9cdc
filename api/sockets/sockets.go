package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/socket"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// subprotocol is the name of the frames in frame.go. The server selects it if the client offers it;
// clients need not.
const subprotocol = "ag-ui.perdure.v1"

// Runs places the runs that run frames start, and finds those that subscribe frames name. Package
// api implements it, since it has the path of an input.
type Runs interface {
	// Accept validates the input of a run as far as no thread is needed, and attaches a view to its
	// run. The caller closes the result. The pointer of an error begins with /input, the member of
	// the frame.
	Accept(ctx context.Context, agent, revision string, input json.RawMessage) (Run, error)
	// Segment returns the segment of a run that a reader with the options is shown, and the options
	// for its view. The error stream.ErrInvalidCursor means that the cursor belongs to no segment.
	Segment(ctx context.Context, run stream.Run, o view.Options) (stream.Run, view.Options, error)
}

// Run is the accepted input of a run frame, and its run. One request owns it and calls its methods
// from one goroutine.
type Run interface {
	// StartOrAttach finds the run, or starts it. It blocks up to the end of ctx; then the outcome
	// is unknown.
	StartOrAttach(ctx context.Context) error
	// Run and Agent name the run. StartOrAttach may change the run to a later segment of its ID.
	Run() stream.Run
	Agent() string
	// View shows the run from its first record. StartOrAttach may replace it, so call View after
	// StartOrAttach.
	View() *view.View
	// Steered is the answer if StartOrAttach has sent the input to an active run as steering; nil =
	// the input has a run of its own.
	Steered() *commands.Steered
	// CancelIfDisconnected cancels the run if its input has set cancelOnDisconnect and ctx has
	// ended because the client is gone.
	CancelIfDisconnected(ctx context.Context)
	// Close ends the view. The run continues.
	Close()
}

// Config configures Sockets. All fields are required.
type Config struct {
	Problems  problem.Writer
	Logger    *slog.Logger
	Finder    *lookup.Finder
	Commands  *commands.Sender
	Decisions *decisions.Service
	Streams   *streams.Streams
	Views     view.Viewer
	Access    *access.Guard
	Recorder  *auditing.Recorder
	Runs      Runs
	// Rates bounds the frames of callers, each like a request.
	Rates *quota.Rates
	// Quotas bounds the open WebSockets of a tenant.
	Quotas *quota.Table
	// Bodies is the memory of messages, which they share with the bodies of requests.
	Bodies *quota.Bytes
	// Closed ends when the server drains: all WebSockets close then, with 1001.
	Closed context.Context
	// MaxMessage bounds a message of a client, in bytes, and MessageTime how long it may take to
	// arrive.
	MaxMessage  int64
	MessageTime time.Duration
	// Heartbeat is the interval of pings. WriteTimeout is how long a client may take no bytes, or
	// leave a ping without an answer, before its connection is cut.
	Heartbeat, WriteTimeout time.Duration
	// MaxRequestsPerSocket bounds the open requests of one WebSocket, MaxSockets the open
	// WebSockets of the node.
	MaxRequestsPerSocket, MaxSockets int
}

// Sockets serves the WebSockets of a node. It is safe for concurrent use. Serve runs one session
// for each WebSocket; to stop, call Drain, end Config.Closed, and call Wait.
type Sockets struct {
	Config

	counter counter
}

// New returns Sockets without an open WebSocket.
func New(cfg Config) *Sockets {
	return &Sockets{Config: cfg, counter: counter{room: quota.NewRoom(cfg.MaxSockets, cfg.Quotas, quota.Sockets)}}
}

// Drain refuses new WebSockets with 503. It does not close open ones: Config.Closed does.
func (s *Sockets) Drain() { s.counter.drain() }

// Open returns the number of open WebSockets of a tenant.
func (s *Sockets) Open(tenant string) int { return s.counter.room.Taken(tenant) }

// OpenOfAll returns the number of open WebSockets of all tenants.
func (s *Sockets) OpenOfAll() int { return s.counter.room.TakenByAll() }

// Wait blocks, after Drain, until the last WebSocket has ended, or until ctx ends, whose cause it
// returns.
func (s *Sockets) Wait(ctx context.Context) error { return s.counter.wait(ctx) }

// Serve serves GET /v1/ws: it upgrades the request to a WebSocket and serves it. It blocks until
// the WebSocket and all of its goroutines have ended. The caller has authenticated the request and
// checked its origin; the principal in the request's context is that of all frames.
//
// Errors before the upgrade: 426 upgrade_required without a WebSocket handshake, 429 quota_exceeded,
// 503 node_full, 503 while the node drains.
func (s *Sockets) Serve(c *gin.Context) {
	caller := request.Caller(c.Request.Context())
	if err := s.counter.enter(caller); err != nil {
		s.Problems.Refuse(c, err)
		return
	}
	defer s.counter.leave(caller)
	conn, err := socket.Upgrade(c.Writer, c.Request, socket.Options{
		Subprotocol: subprotocol, MaxMessage: s.MaxMessage, MessageTime: s.MessageTime, Heartbeat: s.Heartbeat, WriteTimeout: s.WriteTimeout,
	})
	var handshakeErr *socket.HandshakeError
	switch {
	case errors.As(err, &handshakeErr):
		c.Header("Upgrade", "websocket")
		s.Problems.Refuse(c, problem.New(http.StatusUpgradeRequired, "upgrade_required", "this route speaks WebSocket (RFC 6455)"))
		return
	case err != nil:
		return // the client is gone
	}
	ctx, end := telemetry.Socket(c.Request.Context(), c.Request.Header)
	session := newSession(s, "GET /v1/ws", conn)
	session.conn = conn
	end(session.serve(ctx))
}
