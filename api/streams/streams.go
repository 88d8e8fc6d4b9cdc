package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/internal/auth"
)

// Causes with which the contexts of requests end.
var (
	// ErrDrain: the server is shutting down. The client comes back to another node.
	ErrDrain = errors.New("api: the server is shutting down")
	// ErrExpired: the credentials have expired. The client comes back with new ones, and its last
	// event ID.
	ErrExpired = fmt.Errorf("api: under way: %w", auth.ErrExpired)
)

// Config configures Streams. All fields but Strict are required.
type Config struct {
	Problems problem.Writer
	Logger   *slog.Logger
	Watcher  *silence.Watcher
	// Closed ends when streams have to end.
	Closed context.Context
	// Heartbeat is the longest silence of a stream before a comment is sent, Silence that of a run
	// before its workflow is looked at.
	Heartbeat, Silence time.Duration
	// Strict ends a stream before an event that AG-UI forbids.
	Strict bool
	// Most bounds the open streams.
	Most int
}

// Streams sends events to clients. It is safe for concurrent use.
type Streams struct {
	Config

	room *semaphore.Weighted
}

// New returns Streams without an open one.
func New(cfg Config) *Streams {
	return &Streams{cfg, semaphore.NewWeighted(int64(cfg.Most))}
}

// Enter counts a stream. The error is the problem of a full node. The caller calls Leave after its
// stream.
func (s *Streams) Enter() error {
	if !s.room.TryAcquire(1) {
		return problem.Full()
	}
	return nil
}

// Leave ends what Enter has counted.
func (s *Streams) Leave() { s.room.Release(1) }
