package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/process/config"
)

// A round of reconnection tries each known server once. Pauses separate the rounds, and precede the
// first one if the process knows a single server. They grow by reconnectStep up to reconnectWait,
// with a jitter of up to reconnectStep. So a worker that has only lost its server has three rounds in
// 450 ms: it is back before others take it for dead (internal/workers/presence/probe.go).
const (
	reconnectStep = 50 * time.Millisecond
	reconnectWait = 500 * time.Millisecond
)

// reconnectDelay returns the pause before a round; rounds count from 1.
func reconnectDelay(round int) time.Duration {
	return min(time.Duration(round)*reconnectStep, reconnectWait) + rand.N(reconnectStep) //nolint:gosec // jitter
}

// dialNATS connects, and requests the log's stream to check that JetStream answers: a cluster that
// starts accepts connections some seconds before it has a leader. The stream need not exist.
func dialNATS(ctx context.Context, cfg *config.Config, name string, logger *slog.Logger) (*nats.Conn, error) {
	options, err := natsOptions(cfg.NATS)
	if err != nil {
		return nil, permanent(err)
	}
	options = append(options,
		nats.Name(name),
		// The permissions of a process can then exclude the answers to other processes.
		nats.CustomInboxPrefix("_INBOX."+name),
		nats.Timeout(attemptTimeout),
		// -1 = the client reconnects without end.
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		// Operators rotate credentials by hand, not always in the right order. That must not end
		// the process.
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: Close was called
				logger.Warn("lost the connection to NATS, reconnecting", "servers", redacted(cfg.NATS.URL), "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { logger.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			logger.Error("NATS reports an error", "server", nc.ConnectedUrlRedacted(), "error", err, "subject", subject)
		}),
	)
	nc, err := connectNATS(ctx, cfg.NATS.URL, options)
	if err != nil {
		return nil, permanent(fmt.Errorf("%s: %w", redacted(cfg.NATS.URL), err))
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := askJetStream(ctx, nc, cfg.Stream.Stream); err != nil {
		defer nc.Close()
		return nil, fmt.Errorf("%s: %w", nc.ConnectedUrlRedacted(), err)
	}
	return nc, nil
}

// connectNATS is nats.Connect with a context. If ctx ends first, the attempt ends in the background
// within attemptTimeout for each server, and its connection is closed.
func connectNATS(ctx context.Context, url string, options []nats.Option) (*nats.Conn, error) {
	var nc *nats.Conn
	var err error
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		nc, err = nats.Connect(url, options...)
	}()
	select {
	case <-connected:
		return nc, err
	case <-ctx.Done():
		go func() {
			if <-connected; err == nil {
				nc.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// redacted removes users, passwords and tokens from server URLs that are separated by commas.
func redacted(urls string) string {
	list := strings.Split(urls, ",")
	for i, server := range list {
		server = strings.TrimSpace(server)
		scheme, rest, ok := strings.Cut(server, "://")
		if !ok {
			scheme, rest = "nats", server
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		list[i] = scheme + "://" + rest
	}
	return strings.Join(list, ",")
}

// askJetStream requests a stream from JetStream. A missing stream is no error.
func askJetStream(ctx context.Context, nc *nats.Conn, stream string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := js.Stream(ctx, stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("JetStream: %w", err)
	}
	return nil
}

// natsOptions returns the options for credentials and TLS. Errors: *config.VariableError.
func natsOptions(cfg config.NATS) ([]nats.Option, error) {
	var options []nats.Option
	if cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.User != "" {
		options = append(options, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.NKey != "" {
		key, err := nats.NkeyOptionFromSeed(cfg.NKey)
		if err != nil {
			return nil, &config.VariableError{Name: "NATS_NKEY", Err: err}
		}
		options = append(options, key)
	}
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, &config.VariableError{Name: "NATS_CERT", Err: errors.New("NATS_CERT and NATS_KEY must be set together")}
	}
	if cfg.Cert != "" {
		options = append(options, nats.ClientCert(cfg.Cert, cfg.Key))
	}
	if cfg.CA != "" {
		options = append(options, nats.RootCAs(cfg.CA))
	}
	return options, nil
}
