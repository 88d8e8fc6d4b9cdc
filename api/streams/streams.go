package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
)

// Causes with which the context of a request or a stream ends, besides a client that is gone.
var (
	// ErrDrain: the server is shutting down. The client reconnects to another API process.
	ErrDrain = errors.New("api: the server is shutting down")
	// ErrExpired: the credentials have expired, or were revoked, during the request. The client
	// reconnects with new ones and its last event ID.
	ErrExpired = fmt.Errorf("api: active streams: %w", auth.ErrExpired)
)

// Config configures Streams. All fields but Strict are required.
type Config struct {
	Problems problem.Writer
	Logger   *slog.Logger
	Watcher  *silence.Watcher
	// Closed ends when the server drains: all streams end then, with ErrDrain.
	Closed context.Context
	// Heartbeat is the longest time in which an SSE stream sends no bytes; then it sends a comment.
	// Silence is how long a run may write nothing before Watcher checks its workflow.
	Heartbeat, Silence time.Duration
	// Strict ends a stream before an event that AG-UI forbids. Only tests set it.
	Strict bool
	// Answers is the memory of answers, of which a stream takes what its client has not read of
	// large events.
	Answers *quota.Bytes
	// MaxStreams bounds the open streams of the node, and Quotas those of a tenant.
	MaxStreams int
	Quotas     *quota.Table
}

// Streams sends events to clients, and counts the open streams. A node has one, which HTTP handlers
// and WebSockets share. It is safe for concurrent use, owns no goroutine, and needs no Close:
// Config.Closed ends its streams.
type Streams struct {
	Config

	// room has the open streams, and waiting those that wait for a thread to begin.
	room, waiting *quota.Room
	turns         turns
}

// New returns Streams without an open stream.
func New(cfg Config) *Streams {
	return &Streams{
		Config: cfg, room: quota.NewRoom(cfg.MaxStreams, cfg.Quotas, quota.Streams), waiting: quota.NewRoom(max(1, cfg.MaxStreams/waitingShare), cfg.Quotas, ""),
		turns: turns{queue: map[string]*queue{}},
	}
}
