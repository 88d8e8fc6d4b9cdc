package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/socket"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// subprotocol is the name of the frames in frame.go. Clients need not ask for it.
const subprotocol = "ag-ui.perdure.v1"

// Runs starts the runs that frames ask for.
type Runs interface {
	// Accept checks the input of a run as far as no thread is needed, and follows its run. The
	// caller closes it. The error points into the frame, which has the input in its member input.
	Accept(ctx context.Context, agent string, input json.RawMessage) (Run, error)
}

// Run is a run that a frame asks for.
type Run interface {
	// Place finds the run, or starts it.
	Place(ctx context.Context) error
	// Run and Agent name it. A run may become a later segment in Place.
	Run() stream.Run
	Agent() string
	// View shows it from its first record.
	View() *view.View
	// Steered is the answer if Place has told an active run what the input says; nil = the input
	// has its own run.
	Steered() *commands.Steered
	// Abandon cancels the run if its input asks for that, and ctx has ended because the client is
	// gone.
	Abandon(ctx context.Context)
	// Close ends the view.
	Close()
}

// Config configures Sockets. All fields are required.
type Config struct {
	Problems  problem.Writer
	Logger    *slog.Logger
	Find      *lookup.Finder
	Commands  *commands.Sender
	Decisions *decisions.Service
	Streams   *streams.Streams
	Views     view.Viewer
	Runs      Runs
	// Closed ends when sockets have to end.
	Closed context.Context
	// MaxMessage bounds a message of a client, in bytes, and MessageTime how long it may take to
	// arrive.
	MaxMessage  int64
	MessageTime time.Duration
	// Heartbeat is the interval of pings, Patience how long a client may take no bytes.
	Heartbeat, Patience time.Duration
	// PerSocket bounds the open requests of a socket, Most the open sockets.
	PerSocket, Most int
}

// Sockets serves WebSockets. It is safe for concurrent use.
type Sockets struct {
	Config

	open counter
}

// New returns Sockets without an open one.
func New(cfg Config) *Sockets {
	return &Sockets{Config: cfg, open: counter{room: semaphore.NewWeighted(int64(cfg.Most))}}
}

// Drain refuses new sockets. Open ones end when Closed does.
func (s *Sockets) Drain() { s.open.drain() }

// Wait waits, after Drain, for the end of the last socket, or of ctx.
func (s *Sockets) Wait(ctx context.Context) error { return s.open.wait(ctx) }

// Serve turns the request into a WebSocket and serves it. It returns when all goroutines of the
// socket have ended.
func (s *Sockets) Serve(c *gin.Context) {
	if err := s.open.enter(); err != nil {
		s.Problems.Refuse(c, err)
		return
	}
	defer s.open.leave()
	conn, err := socket.Upgrade(c.Writer, c.Request, socket.Options{
		Subprotocol: subprotocol, MaxMessage: s.MaxMessage, MessageTime: s.MessageTime, Heartbeat: s.Heartbeat, Patience: s.Patience,
	})
	var refused *socket.HandshakeError
	switch {
	case errors.As(err, &refused):
		c.Header("Upgrade", "websocket")
		s.Problems.Refuse(c, problem.New(http.StatusUpgradeRequired, "upgrade_required", "this route speaks WebSocket (RFC 6455)"))
		return
	case err != nil:
		return // the client is gone
	}
	ctx, end := telemetry.Socket(c.Request.Context(), c.Request.Header)
	end(newSession(s, conn).serve(ctx))
}
