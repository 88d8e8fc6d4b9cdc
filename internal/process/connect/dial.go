package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/internal/process/config"
)

// Connections are dialed with two layers of repetition. The functions dialNATS and dialTemporal
// make one attempt, bounded by attemptTimeout and ctx, and mark permanent errors. retry repeats
// them until Config.ConnectTimeout. After that the client libraries reconnect by themselves.

// Connections are the open connections of a process. The caller of Dial owns them and calls Close.
// They are safe for concurrent use.
type Connections struct {
	NATS     *nats.Conn
	Temporal client.Client
	// Namespace is the namespace of the Temporal client.
	Namespace string

	bucket io.Closer // of files; nil = there is none
}

// Dial connects to NATS and Temporal, and blocks until both answer or cfg.ConnectTimeout has
// passed. name is the client's name on the NATS server. cfg.Temporal must have the data converter;
// Dial sets its namespace if it is empty.
func Dial(ctx context.Context, cfg *config.Config, name string, logger *slog.Logger) (*Connections, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.ConnectTimeout, fmt.Errorf("no connection after %s", cfg.ConnectTimeout))
	defer cancel()
	if cfg.Temporal.Namespace == "" {
		cfg.Temporal.Namespace = client.DefaultNamespace
	}
	nc, err := retryNATS(ctx, cfg, name, logger)
	if err != nil {
		return nil, err
	}
	tc, err := retry(ctx, "Temporal", logger, func(ctx context.Context) (client.Client, error) {
		tc, err := dialTemporal(ctx, cfg.Temporal, logger)
		if err != nil {
			err = fmt.Errorf("%s: %w", cmp.Or(cfg.Temporal.HostPort, client.DefaultHostPort), err)
		}
		return tc, err
	})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Connections{NATS: nc, Temporal: tc, Namespace: cfg.Temporal.Namespace}, nil
}

// DialNATS is Dial for NATS alone. The caller closes the connection.
func DialNATS(ctx context.Context, cfg *config.Config, name string, logger *slog.Logger) (*nats.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.ConnectTimeout, fmt.Errorf("no connection after %s", cfg.ConnectTimeout))
	defer cancel()
	return retryNATS(ctx, cfg, name, logger)
}

func retryNATS(ctx context.Context, cfg *config.Config, name string, logger *slog.Logger) (*nats.Conn, error) {
	return retry(ctx, "NATS", logger, func(ctx context.Context) (*nats.Conn, error) {
		return dialNATS(ctx, cfg, name, logger)
	})
}

// Close closes the connections. The caller stops their users first.
func (c *Connections) Close() {
	if c.bucket != nil {
		_ = c.bucket.Close() // nothing is written by then
	}
	c.Temporal.Close()
	c.NATS.Close()
}

// attemptTimeout bounds one attempt with one server: a healthy server answers within milliseconds.
const attemptTimeout = 5 * time.Second

// retry repeats attempt until it succeeds, fails permanently, or ctx ends. The error has the cause
// of the end, and the last failure.
func retry[T any](ctx context.Context, server string, logger *slog.Logger, attempt func(context.Context) (T, error)) (T, error) {
	var last error
	once := func() (T, error) {
		connection, err := attempt(ctx)
		last = err
		return connection, err
	}
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = 200*time.Millisecond, 5*time.Second
	connection, err := backoff.Retry(ctx, once, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			logger.WarnContext(ctx, "waiting for a server", "server", server, "error", err, "retry_in", wait)
		}))
	switch {
	case err == nil:
		return connection, nil
	case errors.Is(last, err):
		return connection, fmt.Errorf("connect to %s: %w", server, err)
	}
	return connection, fmt.Errorf("connect to %s: %w; the last attempt: %w", server, err, last)
}

// permanent marks an error that a repetition cannot resolve: missing or unreadable files, and
// refused credentials.
func permanent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, nats.ErrAuthorization) {
		return backoff.Permanent(err)
	}
	return err
}
